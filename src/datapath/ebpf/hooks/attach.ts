// This file writes entries for interfaces and cgroups, attaches the programs to them, and detaches the programs. The order leaves
// no packet unjudged: the entry first, then the programs, then the mark that opens the gate. A hook that carries the programs
// keeps its mark, so another endpoint can take it over without a lost packet.
//
// On an interface the programs are tc filters (tc-programs.ts). On a cgroup the programs are links, which are pinned so that they
// outlive the process. Attaching again replaces the program in one step.

import { existsSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Bpf, errnoName } from '../../../native/native.ts'
import type { HookKey } from '../../hooks/find-hook.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import {
  decodeEndpoint,
  encodeEndpoint,
  encodeHookKey,
  type EndpointValue,
} from '../maps/layout.ts'
import type { CgroupPrograms } from './cgroup-programs.ts'
import type { TcPrograms } from './tc-programs.ts'

const INGRESS = 0
const EGRESS = 1

/** Returns undefined on success, or the reason of the failure. */
export function attachCgroup(
  bpf: Bpf,
  programs: CgroupPrograms,
  links: string,
  key: HookKey,
  path: string,
): string | undefined {
  const found = programs.descriptors()
  if (typeof found === 'string') return found
  const results = [
    bpf.cgroupAttach(path, INGRESS, found.to, linkPin(links, key, 'to')),
    bpf.cgroupAttach(path, EGRESS, found.from, linkPin(links, key, 'from')),
  ]
  const failed = results.find((result) => result < 0)
  return failed === undefined ? undefined : errnoName(failed)
}

/** True if both links are pinned. A link without its pin is gone. */
export function carriesCgroup(links: string, key: HookKey): boolean {
  return existsSync(linkPin(links, key, 'to')) && existsSync(linkPin(links, key, 'from'))
}

/** Removes the programs from a hook. It is no error if the hook is gone. */
export function detach(tc: TcPrograms, links: string, key: HookKey): void {
  if (key.kind === 'interface') {
    tc.detach(key.id)
    return
  }
  for (const direction of ['from', 'to']) {
    try {
      unlinkSync(linkPin(links, key, direction))
    } catch {
      // The link was never attached, or is gone with its cgroup.
    }
  }
}

function linkPin(links: string, key: HookKey, direction: string): string {
  return join(links, `cgroup_${key.id}_${direction}`)
}

/** Returns undefined on success, or the name of the errno with which the kernel refused the entry. */
export function writeEntry(
  endpoints: KernelMap,
  key: HookKey,
  value: Omit<EndpointValue, 'attached'>,
): string | undefined {
  const octets = encodeHookKey(key)
  const before = endpoints.get(octets)
  const attached = before !== undefined && decodeEndpoint(before, 0).attached
  const errno = endpoints.set(octets, encodeEndpoint({ ...value, attached }))
  return errno === 0 ? undefined : errnoName(errno)
}

/** Records in the hook's entry that the programs are attached. Returns undefined on success, or the name of an errno. */
export function markAttached(endpoints: KernelMap, key: HookKey): string | undefined {
  const octets = encodeHookKey(key)
  const before = endpoints.get(octets)
  if (before === undefined) return undefined
  const value = decodeEndpoint(before, 0)
  if (value.attached) return undefined
  const errno = endpoints.set(octets, encodeEndpoint({ ...value, attached: true }))
  return errno === 0 ? undefined : errnoName(errno)
}
