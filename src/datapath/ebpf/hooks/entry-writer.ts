// Puts an entry and the programs on a hook, in the order that leaves no packet unjudged: the entry, the programs, and
// only then the mark by which the gate lets packets come to them. A hook that carries the programs keeps its mark,
// so that an entry changes hands without a packet lost.

import { errnoName } from '../../../native/native.ts'
import type { HookKey } from '../../hooks/find-hook.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import {
  decodeEndpoint,
  encodeEndpoint,
  encodeHookKey,
  type EndpointValue,
} from '../maps/layout.ts'

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
