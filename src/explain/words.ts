// What answers about asking and about connecting have in common.

import { identity } from '../core/ids.ts'
import type { Prefix } from '../core/ip.ts'
import { HOST } from '../identity/reserved.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import { qualifiedName } from '../enforcement/rule-origins.ts'
import type { Asker, Explanation } from './explanation.ts'
import { peerAt, type Peer } from './peer.ts'
import { sorted } from './rules.ts'

/** As policy sees the address in what this endpoint sends. Loopback of a process on the host is the host. */
export function peerOf(
  core: CoreState,
  asker: Asker,
  address: Prefix,
  name: Uint8Array | undefined,
): Peer {
  const peer = peerAt(core, asker.id, address.family, address, name)
  if (asker.hook.kind !== 'cgroup' || !isLoopback(address)) return peer
  return { ...peer, identity: HOST, addressClass: HOST, labels: ['reserved:host'], selectedBy: [] }
}

function isLoopback({ family, octets }: Prefix): boolean {
  if (family === 4) return octets[0] === 127
  return octets[15] === 1 && octets.subarray(0, 15).every((octet) => octet === 0)
}

/** What holds for what no rule speaks of. */
export function defaultOf({ compiled }: SharedRules): Explanation['default'] {
  const denying = compiled.policies.filter((policy) => policy.defaultDeny)
  const named = (isAudited: boolean): readonly string[] =>
    sorted(denying.filter(({ audited = false }) => audited === isAudited).map(qualifiedName))
  return { egress: compiled.egress, policies: named(false), audited: named(true) }
}

export function numbersOf(peers: readonly (Peer | undefined)[]): readonly number[] {
  const numbers = peers.flatMap((peer) => peer?.identity ?? [])
  return [...new Set(numbers.map((number) => identity(number)))].sort((a, b) => a - b)
}

/** `denied` as it ends: what is audited passes. */
export function deniedVerdict({ audited }: Asker): 'deny' | 'audit' {
  return audited === undefined ? 'deny' : 'audit'
}

export function auditWords({ audited }: Asker, denied: boolean): string {
  return denied && audited !== undefined ? `, but passes: audit by ${audited}` : ''
}

/** The commonest cause of a verdict that nobody expected. */
export function unselectedNote({ compiled }: SharedRules): readonly string[] {
  return compiled.policies.length > 0 ? [] : ['no policy selects an endpoint with these labels']
}
