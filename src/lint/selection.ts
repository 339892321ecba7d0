// This file finds rules and policies that select nothing: prefixes that an exception covers completely, empty peers, and selectors that
// contradict themselves. If the endpoints are known, it also finds policies that select no endpoint, and deny rules that select no endpoint
// or resource. It also finds allow rules that select everything.

import { containsPrefix, formatPrefix } from '../core/ip.ts'
import {
  formatSelector,
  indexLabels,
  policySelects,
  selectorMatches,
} from '../policy/match/labels.ts'
import type { LabelSelector, Policy, Rule } from '../policy/rule.ts'
import type { Finding } from './finding.ts'

/** Returns the findings about the peers of one rule. A rule of a tier can mean everything, because later tiers do not widen it. */
export function lintRulePeers(rule: Rule, hasTier: boolean): readonly Finding[] {
  const allows = rule.action === 'allow' && !hasTier
  return [...emptyPeers(rule), ...(allows ? openPeers(rule) : [])]
}

/** Finds peers that select everything. Entities are not reported, because their name shows the intention. */
function openPeers({ peers, position }: Rule): readonly Finding[] {
  if (peers.kind === 'any') return []
  return peers.selectors.flatMap((peer): readonly Finding[] => {
    const code = 'allows-all'
    if (peer.kind === 'cidr' && peer.prefix.length === 0 && peer.except.length === 0) {
      const message = `${formatPrefix(peer.prefix)} without except selects every address of its family`
      const remedy = 'write the prefixes that are meant, or toEntities: [world]'
      return [{ position, code, message, remedy }]
    }
    if (peer.kind !== 'endpoints' || !isEmpty(peer.selector)) return []
    const message = 'an empty selector of toEndpoints selects every endpoint and resource'
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
    return [
      { position, code, message, remedy: 'write a peer, or remove the field to select any peer' },
    ]
  }
  return peers.selectors.flatMap((peer) => {
    if (peer.kind === 'endpoints' && contradicts(peer.selector)) {
      const message = 'a selector of toEndpoints contradicts itself, so it selects nothing'
      return [{ position, code, message, remedy: 'remove one of the conditions' }]
    }
    if (peer.kind !== 'cidr' || !peer.except.some((each) => containsPrefix(each, peer.prefix)))
      return []
    const prefix = formatPrefix(peer.prefix)
    const message = `an exception covers all of ${prefix}, so the peer selects nothing`
    return [
      { position, code, message, remedy: 'make the exception narrower, or remove the prefix' },
    ]
  })
}

/** Returns a finding if the policy can select no endpoint. `endpoints`: the labels of each endpoint, or undefined if not known. */
export function lintSelector(
  policy: Policy,
  endpoints: readonly (readonly string[])[] | undefined,
): readonly Finding[] {
  const { position } = policy
  if (contradicts(policy.selector)) {
    const message = 'endpointSelector contradicts itself, so it selects no endpoint'
    const remedy = 'remove one of the conditions'
    return [{ position, code: 'never-matches', message, remedy }]
  }
  if (endpoints === undefined) return []
  if (endpoints.some((labels) => policySelects(policy, indexLabels(labels)))) return []
  const where =
    policy.namespace === undefined ? '' : `; it selects only in namespace ${policy.namespace}`
  const message = `the policy selects none of the given endpoints${where}`
  const remedy =
    'compare the labels and namespace of the policy with those of the endpoints that are meant'
  return [{ position, code: 'selects-nothing', message, remedy }]
}

/** Finds deny rules with a peer that selects no known endpoint or resource, and so denies nothing. `known`: the labels of each. */
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
      const message = `a peer of a deny rule selects none of the given endpoints and resources, so it denies nothing: ${text}`
      const remedy = 'compare its labels with those of the endpoint or resource that is meant'
      return [{ position, code: 'selects-nothing', message, remedy }]
    }),
  )
}

/** Returns true if no labels can fulfil two of the conditions. Compares only conditions whose keys are written in the same way. */
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
