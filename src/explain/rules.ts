// This file has the functions that explanations about asking and about connecting share. `includes` uses the selectors in force to find
// if a rule selects a peer, as the rules for DNS servers do (enforcement/asking.ts).

import { identity } from '../core/ids.ts'
import { isLoopback, type Prefix } from '../core/ip.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { qualifiedName } from '../enforcement/rule-origins.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import { HOST } from '../identity/reserved.ts'
import type { Selector } from '../identity/selector-cache.ts'
import { coversClass, type RuleOrigin } from '../policy/compile/compile.ts'
import type { PeerSelector, Policy, Rule } from '../policy/rule.ts'
import type { Asker, ExplainedRule, Explanation } from './explanation.ts'
import { type Peer, peerAt } from './peer.ts'

/** Returns all rules of the policies, each with its policy. */
export function rulesOf(policies: readonly Policy[]): readonly RuleOrigin[] {
  return policies.flatMap((policy) => policy.rules.map((rule) => ({ policy, rule })))
}

/** Returns a rule with its place, for an explanation. */
export function explained({ policy, rule }: RuleOrigin): ExplainedRule {
  const { file, line } = rule.position
  const { tier } = policy
  return {
    policy: qualifiedName(policy),
    file,
    line,
    action: rule.action,
    ...(tier && { tier: `${tier.name} ${tier.priority}` }),
    ...(rule.name !== undefined && { name: rule.name }),
  }
}

/** True if a selector of a rule selects the peer. */
export function includes(core: CoreState, peer: Peer, selector: PeerSelector): boolean {
  if (selector.kind === 'entity') return coversClass(selector.entity, peer.addressClass)
  const found = core.selectors.find(selector)
  return found !== undefined && peer.selectedBy.includes(found)
}

/** Returns the texts of a rule's selectors that select the peer. */
export function matchedBy(core: CoreState, peer: Peer, { peers }: Rule): readonly string[] {
  if (peers.kind === 'any') return []
  return peers.selectors
    .filter((selector) => includes(core, peer, selector))
    .map((selector) => textOf(core, selector))
}

/** Returns a selector as `get selectors` shows it. */
export function textOf(core: CoreState, selector: PeerSelector): string {
  if (selector.kind === 'entity') return selector.entity
  const found: Selector | undefined = core.selectors.find(selector)
  return found?.text ?? selector.kind
}

/** Returns each text once, sorted. */
export function sorted(texts: Iterable<string>): readonly string[] {
  return [...new Set(texts)].sort()
}

/** Returns an address as policy sees it in packets of this endpoint. For a cgroup endpoint, loopback is the host. */
export function peerOf(
  core: CoreState,
  asker: Asker,
  address: Prefix,
  name: Uint8Array | undefined,
): Peer {
  const peer = peerAt(core, asker.id, address.family, address, name)
  if (asker.hook.kind !== 'cgroup' || !isLoopback(address.family, address.octets)) return peer
  return { ...peer, identity: HOST, addressClass: HOST, labels: ['reserved:host'], selectedBy: [] }
}

/** Returns the default for everything that no rule names. */
export function defaultOf({ compiled }: SharedRules): Explanation['default'] {
  const denying = compiled.policies.filter((policy) => policy.defaultDeny)
  const named = (isAudited: boolean): readonly string[] =>
    sorted(denying.filter(({ audited = false }) => audited === isAudited).map(qualifiedName))
  return { egress: compiled.egress, policies: named(false), audited: named(true) }
}

/** Returns the identities of the peers, each once, in ascending order. */
export function numbersOf(peers: readonly (Peer | undefined)[]): readonly number[] {
  const numbers = peers.flatMap((peer) => peer?.identity ?? [])
  return [...new Set(numbers.map((number) => identity(number)))].sort((a, b) => a - b)
}

/** Returns the verdict on traffic that policy denies: `audit` if the endpoint is audited. */
export function deniedVerdict({ audited }: Asker): 'deny' | 'audit' {
  return audited === undefined ? 'deny' : 'audit'
}

/** Returns words to add to a reason if denied traffic passes because of audit; else an empty text. */
export function auditWords({ audited }: Asker, denied: boolean): string {
  return denied && audited !== undefined ? `, but passes: audit by ${audited}` : ''
}

/** Returns a note about the most common cause of an unexpected verdict: no policy selects the endpoint. */
export function unselectedNote({ compiled }: SharedRules): readonly string[] {
  return compiled.policies.length > 0 ? [] : ['no policy selects an endpoint with these labels']
}
