// Rules of policies as explain shows them, and whether the peer of a question is among a rule's peers: asked of
// the selectors in force, as the rules for servers are (policy-control.ts).

import type { Selector } from '../identity/selector-cache.ts'
import { coversClass, type RuleOrigin } from '../policy/compile/compile.ts'
import type { PeerSelector, Policy, Rule } from '../policy/rule.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { qualifiedName } from '../enforcement/rule-origins.ts'
import type { ExplainedRule } from './explanation.ts'
import type { Peer } from './peer.ts'

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
