// `lintShadows` finds allow rules that have no effect, because deny rules deny everything that the allow rule allows. A deny rule is
// considered if its policy selects at least the endpoints of the allow rule's policy, and is not audited, because audited policies deny
// nothing. Ports are compared by `flatten`, which also makes the entries of policy maps.

import { containsPrefix } from '../core/ip.ts'
import { EVERYTHING } from '../core/protocol.ts'
import { formatPlace } from '../core/errors.ts'
import { flatten, type Action, type Coverage } from '../policy/compile/flatten.ts'
import type { LabelSelector, PeerSelector, Peers, Policy, Rule } from '../policy/rule.ts'
import type { Finding } from './finding.ts'

/** Returns one finding for each allow rule without effect. */
export function lintShadows(policies: readonly Policy[]): readonly Finding[] {
  const denying = policies
    .filter(({ audited }) => audited !== true)
    .flatMap((policy) =>
      policy.rules.filter(({ action }) => action === 'deny').map((rule) => ({ policy, rule })),
    )
  if (denying.length === 0) return []
  return policies.flatMap((policy) => {
    const applying = denying
      .filter((each) => selectsAtLeast(each.policy, policy))
      .map(({ rule }) => rule)
    return policy.rules.flatMap((rule) => lintRule(rule, applying))
  })
}

function lintRule(rule: Rule, denying: readonly Rule[]): readonly Finding[] {
  const allows = coverages(rule, 'allow')
  if (rule.action === 'deny' || allows.length === 0) return []
  const peers: readonly (PeerSelector | undefined)[] =
    rule.peers.kind === 'any' ? [undefined] : rule.peers.selectors
  const by = new Set<Rule>()
  for (const peer of peers) {
    const covering = denying.filter((deny) => coversPeer(deny.peers, peer))
    const denies = covering.flatMap((deny) => coverages(deny, 'deny'))
    if (flatten([...denies, ...allows]).some(({ action }) => action === 'allow')) return []
    for (const deny of covering) by.add(deny)
  }
  if (by.size === 0) return []
  const places = [...by].map(({ position }) => formatPlace(position)).join(', ')
  return [
    {
      position: rule.position,
      code: 'shadowed-by-deny',
      message: `everything that this rule allows is denied at ${places}, because deny beats allow`,
      remedy: 'remove the rule, or make the deny rule narrower',
    },
  ]
}

/** Returns the ports of a rule as coverages. Entries with `rules.dns` open no port. */
function coverages({ toPorts }: Rule, action: Action): readonly Coverage[] {
  if (toPorts === undefined) return [{ action, range: EVERYTHING, origin: 0 }]
  return toPorts
    .filter(({ dns }) => dns === undefined)
    .flatMap(({ ports }) => ports.map((range) => ({ action, range, origin: 0 })))
}

/** Returns true if a deny rule covers every address that the peer can have. `peer` undefined means any peer. */
function coversPeer(denied: Peers, peer: PeerSelector | undefined): boolean {
  if (denied.kind === 'any') return true
  const entities = denied.selectors.flatMap((each) => (each.kind === 'entity' ? [each.entity] : []))
  if (entities.includes('all')) return true
  const isWorld = entities.includes('world')
  switch (peer?.kind) {
    case undefined:
      return false
    case 'fqdn':
      // Assumes that the addresses of names are outside of the cluster.
      return isWorld
    case 'cidr':
      return (
        denied.selectors.some(
          (each) =>
            each.kind === 'cidr' &&
            containsPrefix(each.prefix, peer.prefix) &&
            each.except.every((except) => !overlaps(except, peer.prefix)),
        ) ||
        isWorld ||
        entities.includes(peer.prefix.family === 4 ? 'world-ipv4' : 'world-ipv6')
      )
    case 'entity':
      return (
        peer.entity !== 'none' &&
        (entities.includes(peer.entity) ||
          (isWorld && peer.entity.startsWith('world')) ||
          (peer.entity === 'host' && entities.includes('cluster')))
      )
    case 'endpoints':
      return entities.includes('cluster')
  }
}

function overlaps(a: Parameters<typeof containsPrefix>[0], b: typeof a): boolean {
  return containsPrefix(a, b) || containsPrefix(b, a)
}

/** Returns true if `wide` selects every endpoint that `narrow` selects. Compares only the text of the selectors. */
export function selectsAtLeast(wide: Policy, narrow: Policy): boolean {
  if (wide.namespace !== undefined && wide.namespace !== narrow.namespace) return false
  return isWeaker(wide.selector, narrow.selector)
}

function isWeaker(wide: LabelSelector, narrow: LabelSelector): boolean {
  const conditions = (narrow.matchExpressions ?? []).map((each) => JSON.stringify(each))
  return (
    [...wide.matchLabels].every(([key, value]) => narrow.matchLabels.get(key) === value) &&
    (wide.matchExpressions ?? []).every((each) => conditions.includes(JSON.stringify(each)))
  )
}
