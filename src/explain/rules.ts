// Rules, peers and wording that the answers about asking and about connecting share. Whether a peer is among a rule's peers
// is asked of the selectors in force, as for the rules of servers (policy-control.ts).

import { identity } from '../core/ids.ts'
import type { Prefix } from '../core/ip.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { qualifiedName } from '../enforcement/rule-origins.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import { HOST } from '../identity/reserved.ts'
import type { Selector } from '../identity/selector-cache.ts'
import { coversClass, type RuleOrigin } from '../policy/compile/compile.ts'
import type { PeerSelector, Policy, Rule } from '../policy/rule.ts'
import type { Asker, ExplainedRule, Explanation } from './explanation.ts'
import { type Peer, peerAt } from './peer.ts'

export function rulesOf(policies: readonly Policy[]): readonly RuleOrigin[] {
  return policies.flatMap((policy) => policy.rules.map((rule) => ({ policy, rule })))
}

export function explained({ policy, rule }: RuleOrigin): ExplainedRule {
  const { file, line } = rule.position
  return { policy: qualifiedName(policy), file, line, action: rule.action }
}

/** Whether one selector of a rule selects the peer. */
export function includes(core: CoreState, peer: Peer, selector: PeerSelector): boolean {
  if (selector.kind === 'entity') return coversClass(selector.entity, peer.addressClass)
  const found = core.selectors.find(selector)
  return found !== undefined && peer.selectedBy.includes(found)
}

/** The texts of a rule's selectors that select the peer. */
export function matchedBy(core: CoreState, peer: Peer, { peers }: Rule): readonly string[] {
  if (peers.kind === 'any') return []
  return peers.selectors
    .filter((selector) => includes(core, peer, selector))
    .map((selector) => textOf(core, selector))
}

/** As `get selectors` shows it. */
export function textOf(core: CoreState, selector: PeerSelector): string {
  if (selector.kind === 'entity') return selector.entity
  const found: Selector | undefined = core.selectors.find(selector)
  return found?.text ?? selector.kind
}

/** Each once, in the order of the text. */
export function sorted(texts: Iterable<string>): readonly string[] {
  return [...new Set(texts)].sort()
}

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

/** The verdict on denied traffic: it passes when it is audited. */
export function deniedVerdict({ audited }: Asker): 'deny' | 'audit' {
  return audited === undefined ? 'deny' : 'audit'
}

export function auditWords({ audited }: Asker, denied: boolean): string {
  return denied && audited !== undefined ? `, but passes: audit by ${audited}` : ''
}

/** The commonest cause of an unexpected verdict. */
export function unselectedNote({ compiled }: SharedRules): readonly string[] {
  return compiled.policies.length > 0 ? [] : ['no policy selects an endpoint with these labels']
}
