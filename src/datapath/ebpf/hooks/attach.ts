// Puts entries and programs on interfaces and cgroups, and takes the programs away. The order leaves no packet unjudged: the entry, the
// programs, and then the mark that opens the gate. A hook that carries the programs keeps its mark, so that an entry changes its endpoint
// without losing a packet.
//
// On an interface the programs are tc filters with a handle of our own at the first priority. Other filters stay, and they still see the
// packets that ours admit (TC_ACT_UNSPEC). On a cgroup the programs are links, pinned so that they outlive the process. Attaching again
// replaces the program in one step.

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

const TC_HANDLE = 0x4e47
const TC_PRIORITY = 1
const INGRESS = 0
const EGRESS = 1

export interface Programs {
  readonly tcFrom: number
  readonly tcTo: number
  readonly cgroupFrom: number
  readonly cgroupTo: number
}

/** Undefined, or the name of the errno. */
export type AttachResult = string | undefined

/** `side`: where the endpoint's packets come in. Following what it receives starts before judging. */
export function attachInterface(
  bpf: Bpf,
  programs: Programs,
  ifindex: number,
  side: 'ingress' | 'egress',
): AttachResult {
  const from = side === 'ingress' ? INGRESS : EGRESS
  const to = side === 'ingress' ? EGRESS : INGRESS
  const results = [
    bpf.tcAttach(ifindex, to, TC_HANDLE, TC_PRIORITY, programs.tcTo),
    bpf.tcAttach(ifindex, from, TC_HANDLE, TC_PRIORITY, programs.tcFrom),
  ]
  return firstError(results)
}

export function attachCgroup(
  bpf: Bpf,
  programs: Programs,
  links: string,
  key: HookKey,
  path: string,
): AttachResult {
  return firstError([
    bpf.cgroupAttach(path, INGRESS, programs.cgroupTo, linkPin(links, key, 'to')),
    bpf.cgroupAttach(path, EGRESS, programs.cgroupFrom, linkPin(links, key, 'from')),
  ])
}

/** Whether both programs are where `attachInterface` puts them. */
export function carriesInterface(
  bpf: Bpf,
  programs: Programs,
  ifindex: number,
  side: 'ingress' | 'egress',
): boolean {
  const [inward, outward] =
    side === 'ingress' ? [programs.tcFrom, programs.tcTo] : [programs.tcTo, programs.tcFrom]
  return (
    bpf.tcQuery(ifindex, INGRESS, TC_HANDLE, TC_PRIORITY) === bpf.programId(inward) &&
    bpf.tcQuery(ifindex, EGRESS, TC_HANDLE, TC_PRIORITY) === bpf.programId(outward)
  )
}

/** Whether both links are pinned: without its pin a link is gone. */
export function carriesCgroup(links: string, key: HookKey): boolean {
  return existsSync(linkPin(links, key, 'to')) && existsSync(linkPin(links, key, 'from'))
}

/** Takes the programs off a hook; a hook that is gone is no error. */
export function detach(bpf: Bpf, links: string, key: HookKey): void {
  if (key.kind === 'interface') {
    bpf.tcDetach(key.id, INGRESS, TC_HANDLE, TC_PRIORITY)
    bpf.tcDetach(key.id, EGRESS, TC_HANDLE, TC_PRIORITY)
    return
  }
  for (const direction of ['from', 'to']) {
    try {
      unlinkSync(linkPin(links, key, direction))
    } catch {
      // Never attached, or gone with its cgroup.
    }
  }
}

function linkPin(links: string, key: HookKey, direction: string): string {
  return join(links, `cgroup_${key.id}_${direction}`)
}

function firstError(results: readonly number[]): AttachResult {
  const failed = results.find((result) => result < 0)
  return failed === undefined ? undefined : errnoName(failed)
}

/** Undefined, or the name of the errno that refused it. */
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

/** The programs are on. Undefined, or the name of an errno. */
export function markAttached(endpoints: KernelMap, key: HookKey): string | undefined {
  const octets = encodeHookKey(key)
  const before = endpoints.get(octets)
  if (before === undefined) return undefined
  const value = decodeEndpoint(before, 0)
  if (value.attached) return undefined
  const errno = endpoints.set(octets, encodeEndpoint({ ...value, attached: true }))
  return errno === 0 ? undefined : errnoName(errno)
}
