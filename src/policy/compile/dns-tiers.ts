// This file decides what the tiers of ClusterNetworkPolicies mean for DNS questions (docs/spec/semantics 2 "Tiers").
// `domainNames` of an Accept rule permit the question for these names, as `toFQDNs` with `rules.dns` do. They never restrict: a
// policy with `domainNames` alone leaves all other questions as they were. The order of rules counts only for rules that include
// DNS servers (`decisionOf`).

import type { Pattern } from '../match/pattern.ts'
import type { Policy, Rule, RuleAction, Tier } from '../rule.ts'

/** Returns the policies of all forms that have no tier. */
export function withoutTiers(policies: readonly Policy[]): readonly Policy[] {
  return policies.some(({ tier }) => tier !== undefined)
    ? policies.filter(({ tier }) => tier === undefined)
    : policies
}

/** Returns the names that the Accept rules of a tier permit to ask. */
export function namesOfTier(policies: readonly Policy[], tier: Tier['name']): readonly Pattern[] {
  return policies
    .filter((policy) => policy.tier?.name === tier)
    .flatMap(({ rules }) => rules.flatMap(domainNamesOf))
}

/** Returns the `domainNames` of a rule. */
export function domainNamesOf({ peers, action }: Rule): readonly Pattern[] {
  if (peers.kind === 'any' || action !== 'allow') return []
  return peers.selectors.flatMap((peer) => (peer.kind === 'fqdn' ? [peer.pattern] : []))
}

/**
 * Returns what a tier decides if exactly the rules match for which `matches` is true; undefined if none matches. The lowest priority that
 * matches decides, and of one policy its first rule. Among policies with equal priority, deny wins over pass, and pass over allow.
 */
export function decisionOf(
  policies: readonly Policy[],
  tier: Tier['name'],
  matches: (rule: Rule) => boolean,
): RuleAction | undefined {
  let lowest = Number.POSITIVE_INFINITY
  let actions: readonly RuleAction[] = []
  for (const policy of policies) {
    if (policy.tier?.name !== tier || policy.tier.priority > lowest) continue
    const first = policy.rules.find(matches)
    if (first === undefined) continue
    const { priority } = policy.tier
    actions = priority < lowest ? [first.action] : [...actions, first.action]
    lowest = priority
  }
  return (['deny', 'pass', 'allow'] as const).find((each) => actions.includes(each))
}
