// Rules and policies that select nothing: prefixes that their exceptions use up, empty peers, selectors that contradict
// themselves, and, where the endpoints are known, policies that select none of them.

import { containsPrefix, formatPrefix } from '../core/ip.ts'
import {
  formatSelector,
  indexLabels,
  policySelects,
  selectorMatches,
} from '../policy/match/labels.ts'
import type { LabelSelector, Policy, Rule } from '../policy/rule.ts'
import type { Finding } from './finding.ts'

export function lintRulePeers(rule: Rule): readonly Finding[] {
  return [...emptyPeers(rule), ...(rule.action === 'allow' ? openPeers(rule) : [])]
}

/** Peers that everything fits; entities say it in a word, so they are meant. */
function openPeers({ peers, position }: Rule): readonly Finding[] {
  if (peers.kind === 'any') return []
  return peers.selectors.flatMap((peer): readonly Finding[] => {
    const code = 'allows-all'
    if (peer.kind === 'cidr' && peer.prefix.length === 0 && peer.except.length === 0) {
      const message = `${formatPrefix(peer.prefix)} without except is every address of its family`
      const remedy = 'write the prefixes that are meant, or toEntities: [world]'
      return [{ position, code, message, remedy }]
    }
    if (peer.kind !== 'endpoints' || !isEmpty(peer.selector)) return []
    const message = 'an empty selector of toEndpoints is every endpoint and resource'
    const remedy = 'write the labels that are meant, or toEntities: [cluster]'
    return [{ position, code, message, remedy }]
  })
}

function isEmpty({ matchLabels, matchExpressions = [] }: LabelSelector): boolean {
  return matchLabels.size === 0 && matchExpressions.length === 0
}

function emptyPeers({ peers, position }: Rule): readonly Finding[] {
  if (peers.kind === 'any') return []
  const code = 'never-matches'
  if (peers.selectors.length === 0) {
    const message = 'the peers are empty: the rule selects nothing'
    return [{ position, code, message, remedy: 'name a peer, or leave the field out for any peer' }]
  }
  return peers.selectors.flatMap((peer) => {
    if (peer.kind === 'endpoints' && contradicts(peer.selector)) {
      const message = 'a selector of toEndpoints contradicts itself: no labels fit'
      return [{ position, code, message, remedy: 'leave one of the conditions out' }]
    }
    if (peer.kind !== 'cidr' || !peer.except.some((each) => containsPrefix(each, peer.prefix)))
      return []
    const prefix = formatPrefix(peer.prefix)
    const message = `an exception takes all of ${prefix} away: nothing is selected`
    return [
      { position, code, message, remedy: 'make the exception narrower, or leave the prefix out' },
    ]
  })
}

/** `endpoints` are the labels of each; undefined when they are not known. */
export function lintSelector(
  policy: Policy,
  endpoints: readonly (readonly string[])[] | undefined,
): readonly Finding[] {
  const { position } = policy
  if (contradicts(policy.selector)) {
    const message = 'endpointSelector contradicts itself: no labels fit'
    const remedy = 'leave one of the conditions out'
    return [{ position, code: 'never-matches', message, remedy }]
  }
  if (endpoints === undefined) return []
  if (endpoints.some((labels) => policySelects(policy, indexLabels(labels)))) return []
  const where =
    policy.namespace === undefined ? '' : `; it selects in namespace ${policy.namespace}`
  const message = `the policy selects none of the endpoints that are given${where}`
  const remedy = 'compare its labels and namespace with those of the endpoints that are meant'
  return [{ position, code: 'selects-nothing', message, remedy }]
}

/** Deny rules with a peer that selects nothing of what is known: what they name is not denied. */
export function lintDenies(
  policies: readonly Policy[],
  known: readonly (readonly string[])[],
): readonly Finding[] {
  const indexes = known.map((labels) => indexLabels(labels))
  const denies = policies.flatMap(({ rules }) => rules.filter(({ action }) => action === 'deny'))
  return denies.flatMap(({ peers, position }) =>
    (peers.kind === 'any' ? [] : peers.selectors).flatMap((peer): readonly Finding[] => {
      if (peer.kind !== 'endpoints') return []
      if (indexes.some((labels) => selectorMatches(peer.selector, labels))) return []
      const text = formatSelector(peer.selector)
      const message = `a deny rule selects none of the endpoints and resources that are given: ${text}`
      const remedy = 'compare its labels with those of what is meant: nothing is denied until then'
      return [{ position, code: 'selects-nothing', message, remedy }]
    }),
  )
}

/** Conditions on one key, written alike, that no value fulfils. */
function contradicts({ matchLabels, matchExpressions = [] }: LabelSelector): boolean {
  return matchExpressions.some((each) => {
    const own = matchLabels.get(each.key)
    const others = matchExpressions.filter((other) => other !== each && other.key === each.key)
    switch (each.operator) {
      case 'In':
        return (
          (own !== undefined && !each.values.includes(own)) ||
          others.some(({ operator, values }) => {
            if (operator === 'In') return !values.some((value) => each.values.includes(value))
            return operator === 'NotIn' && each.values.every((value) => values.includes(value))
          })
        )
      case 'NotIn':
        return own !== undefined && each.values.includes(own)
      case 'Exists':
        return false
      case 'DoesNotExist':
        return (
          own !== undefined ||
          others.some(({ operator }) => operator === 'Exists' || operator === 'In')
        )
    }
  })
}
