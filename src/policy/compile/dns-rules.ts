// May this endpoint ask this name? In explicit mode the asked server is the proxy's, so peers are not
// compared; which rules count then is docs/spec/semantics 2 "DNS":
//   - a `toPorts` entry with `rules.dns` that covers port 53 permits the names that its patterns match, over the protocols
//     that it is for;
//   - a rule without `rules.dns` permits every name if it covers port 53 and either names that port, has no
//     peer field, or has the peer `toEntities: world | all`;
//   - a `toFQDNs` peer, or one that selects nothing, never permits asking;
//   - an endpoint none of whose rules has `rules.dns` asks anything, or with `dns.without-rules: deny` only
//     what the rule above permits;
//   - a deny rule for any peer that covers port 53 denies every name: deny beats allow.
// An audited policy takes nothing away: `taking` are the policies that may, and only their deny rules, their default deny and
// their having `rules.dns` count. What all of them permit, audited or not, counts in any case.
// UDP and TCP have rules of their own: each port counts for its protocol, ANY for both. Which endpoints have `rules.dns` at
// all is asked of both.

import { ANY_PROTOCOL, type DnsProtocol, type PortRange } from '../../core/protocol.ts'
import type { DefaultEgress } from './default-egress.ts'
import type { Pattern } from '../match/pattern.ts'
import type { Peers, Policy, PortRule, Rule } from '../rule.ts'

/** What an endpoint may ask over one protocol. */
export type DnsRules =
  | { readonly kind: 'every-name' }
  | { readonly kind: 'no-name' }
  | { readonly kind: 'names'; readonly patterns: readonly Pattern[] }

/** The port that transparent clients ask, and as which explicit mode judges. */
export const DNS_PORT = 53

export function compileDnsRules(
  policies: readonly Policy[],
  taking: readonly Policy[],
  options: {
    readonly withoutRules: 'allow' | 'deny'
    readonly egress: DefaultEgress
    readonly protocol: DnsProtocol
  },
): DnsRules {
  const { protocol } = options
  const rules = policies.flatMap((policy) => policy.rules)
  if (taking.some((policy) => policy.rules.some((rule) => deniesAsking(rule, protocol))))
    return { kind: 'no-name' }
  const hasDns = taking.some(hasDnsRules)
  if (!hasDns && options.withoutRules === 'allow') return { kind: 'every-name' }
  if (rules.some((rule) => permitsEveryName(rule, protocol))) return { kind: 'every-name' }
  if (!hasDns) return { kind: 'no-name' }
  if (options.egress === 'allow' || options.egress === 'audit') return { kind: 'every-name' }
  const patterns: Pattern[] = []
  for (const { peers, toPorts } of rules) {
    if (toPorts === undefined || !mayBeServer(peers)) continue
    for (const entry of toPorts)
      for (const pattern of patternsOf(entry, protocol)) patterns.push(pattern)
  }
  return { kind: 'names', patterns }
}

/** Whether two are alike, pattern by pattern. */
export function areSameRules(a: DnsRules, b: DnsRules): boolean {
  if (a.kind !== 'names' || b.kind !== 'names') return a.kind === b.kind
  const { patterns } = b
  return (
    a.patterns.length === patterns.length && a.patterns.every((each, i) => each === patterns[i])
  )
}

export function hasDnsRules({ rules }: Policy): boolean {
  return rules.some((rule) => rule.toPorts?.some((entry) => entry.dns !== undefined))
}

export function patternsOf({ dns, ports }: PortRule, protocol: DnsProtocol): readonly Pattern[] {
  return dns !== undefined && ports.some((range) => coversDns(range, protocol)) ? dns : []
}

export function permitsEveryName(rule: Rule, protocol: DnsProtocol): boolean {
  if (rule.action !== 'allow' || !mayBeServer(rule.peers)) return false
  const wide = hasEntity(rule.peers, ['world', 'all'])
  // The empty rule, no peer and no port, allows nothing.
  if (rule.toPorts === undefined) return wide
  const anyServer = wide || rule.peers.kind === 'any'
  return rule.toPorts.some((entry) => {
    if (entry.dns !== undefined) return false
    const covering = entry.ports.filter((range) => coversDns(range, protocol))
    return anyServer ? covering.length > 0 : covering.some(namesPort)
  })
}

export function deniesAsking(rule: Rule, protocol: DnsProtocol): boolean {
  if (rule.action !== 'deny') return false
  const every = hasEntity(rule.peers, ['all'])
  if (rule.toPorts === undefined) return every
  if (!every && rule.peers.kind !== 'any') return false
  return rule.toPorts.some(({ ports }) => ports.some((range) => coversDns(range, protocol)))
}

/** A `toFQDNs` peer never permits asking, and one that selects nothing permits nothing. */
export function mayBeServer(peers: Peers): boolean {
  if (peers.kind === 'any') return true
  return peers.selectors.some((peer) =>
    peer.kind === 'entity' ? peer.entity !== 'none' : peer.kind !== 'fqdn',
  )
}

function hasEntity(peers: Peers, entities: readonly string[]): boolean {
  if (peers.kind !== 'selectors') return false
  return peers.selectors.some((peer) => peer.kind === 'entity' && entities.includes(peer.entity))
}

function coversDns(range: PortRange, protocol: DnsProtocol): boolean {
  return coversPort(range, DNS_PORT, protocol)
}

export function coversPort(range: PortRange, port: number, protocol: DnsProtocol): boolean {
  const isFor = range.protocol === ANY_PROTOCOL || range.protocol === protocol
  return isFor && range.low <= port && port <= range.high
}

/** Covers ports by number, not by standing for every port. */
function namesPort({ low, high }: PortRange): boolean {
  return !(low === 0 && high === 65_535)
}
