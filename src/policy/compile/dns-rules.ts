// May an endpoint ask a name (docs/spec/semantics 2 "DNS")? In explicit mode the asked server is the proxy, so peers are not
// compared:
//   - a `toPorts` entry with `rules.dns` that covers port 53 permits the names that its patterns match, over the protocols
//     that it is for;
//   - a rule without `rules.dns` permits every name if it covers port 53 and either names that port, has no
//     peer field, or has the peer `toEntities: world | all`;
//   - a `toFQDNs` peer, or one that selects nothing, never permits asking;
//   - an endpoint none of whose rules has `rules.dns` asks anything, or with `dns.without-rules: deny` only
//     what the rule above permits;
//   - a deny rule for any peer that covers port 53 denies every name: deny beats allow.
// Audited policies never deny. `enforced` are the policies that are not audited: only their deny rules, their default deny and
// their `rules.dns` restrict. What any policy permits, audited or not, counts in any case.
// UDP and TCP have separate rules: each port counts for its protocol, ANY for both. Whether an endpoint has `rules.dns` at all
// is one answer for both.
//
// Where the client chooses the server (`upstreams.original-destination`), there are two questions:
//   - is the server admitted at that port: a rule whose peers include it and whose ports include the port, with or without
//     `rules.dns`, or an open default; no deny rule that covers it. Deny beats allow.
//   - may the name be asked: yes where such a rule has no `rules.dns`, or patterns that match; yes when no rule of the endpoint
//     has `rules.dns` (`dns.without-rules`) or no policy puts it into default deny.
// A `toFQDNs` peer includes no server for either question. With `default-egress: allow-named`, asking is how addresses get
// names, so it admits the trusted servers, as the open defaults do.

import { ANY_PROTOCOL, type DnsProtocol, type PortRange } from '../../core/protocol.ts'
import type { Pattern } from '../match/pattern.ts'
import type { Peers, PeerSelector, Policy, PortRule, Rule } from '../rule.ts'
import type { DefaultEgress } from './default-egress.ts'

/** The names that an endpoint may ask over one protocol. */
export type DnsRules =
  | { readonly kind: 'every-name' }
  | { readonly kind: 'no-name' }
  | { readonly kind: 'names'; readonly patterns: readonly Pattern[] }

/** The port that transparent clients ask, and that explicit mode assumes. */
export const DNS_PORT = 53

export function compileDnsRules(
  policies: readonly Policy[],
  enforced: readonly Policy[],
  options: {
    readonly withoutRules: 'allow' | 'deny'
    readonly egress: DefaultEgress
    readonly protocol: DnsProtocol
  },
): DnsRules {
  const { protocol } = options
  const rules = policies.flatMap((policy) => policy.rules)
  if (enforced.some((policy) => policy.rules.some((rule) => deniesAsking(rule, protocol))))
    return { kind: 'no-name' }
  const hasDns = enforced.some(hasDnsRules)
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

/** The names that may be asked of one server, or its refusal. */
export type ServerRules = DnsRules | { readonly kind: 'not-admitted' }

export interface ServerQuery {
  readonly withoutRules: 'allow' | 'deny'
  /** `deny` where a policy turns default deny on. */
  readonly egress: DefaultEgress
  /** The port of the query, and its protocol. */
  readonly port: number
  readonly protocol: DnsProtocol
  /** Whether the server is the address of a known endpoint or resource. */
  readonly isKnown: boolean
  /** Whether a peer selects the server. */
  readonly includes: (peer: Exclude<PeerSelector, { readonly kind: 'fqdn' }>) => boolean
}

/** A rule without `toPorts`, as an entry. */
const EVERY_PORT: PortRule = { ports: [], dns: undefined }

/** `enforced`: the policies that are not audited, or all of them. */
export function serverRulesOf(
  policies: readonly Policy[],
  enforced: readonly Policy[],
  query: ServerQuery,
): ServerRules {
  const entriesFor = (of: readonly Policy[], action: Rule['action']): readonly PortRule[] =>
    of
      .flatMap(({ rules }) => rules.filter((rule) => rule.action === action))
      .flatMap((rule) => entriesOf(rule, query))
  if (entriesFor(enforced, 'deny').length > 0) return { kind: 'not-admitted' }
  const entries = entriesFor(policies, 'allow')
  if (entries.length === 0 && !isOpen(query)) return { kind: 'not-admitted' }
  const hasDns = enforced.some(hasDnsRules)
  if (!hasDns && query.withoutRules === 'allow') return { kind: 'every-name' }
  if (entries.some((entry) => entry.dns === undefined)) return { kind: 'every-name' }
  if (!hasDns) return { kind: 'no-name' }
  if (query.egress === 'allow' || query.egress === 'audit') return { kind: 'every-name' }
  return { kind: 'names', patterns: entries.flatMap((entry) => entry.dns ?? []) }
}

/** The entries of a rule that cover the server at its port over the protocol. The empty rule covers nothing. */
export function entriesOf({ peers, toPorts }: Rule, query: ServerQuery): readonly PortRule[] {
  const included =
    peers.kind === 'any'
      ? toPorts !== undefined
      : peers.selectors.some((peer) => peer.kind !== 'fqdn' && query.includes(peer))
  if (!included) return []
  if (toPorts === undefined) return [EVERY_PORT]
  return toPorts.filter(({ ports }) =>
    ports.some((range) => coversPort(range, query.port, query.protocol)),
  )
}

function isOpen({ egress, isKnown }: ServerQuery): boolean {
  return egress === 'allow-known' ? isKnown : egress !== 'deny'
}
