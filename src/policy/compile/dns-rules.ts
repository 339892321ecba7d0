// This file decides which names an endpoint can ask (docs/spec/semantics 2 "DNS"). Normally namegate chooses the server, so the peers of a
// rule are not compared with the server. Then:
//   - A `toPorts` entry with `rules.dns` that covers port 53 permits the names that its patterns match.
//   - A `toPorts` entry without `rules.dns` that covers port 53 permits every name if it does not cover all ports. If its rule has no peer
//     field, or has the peer `toEntities: world | all`, an entry that covers all ports permits every name, too.
//   - A rule without `toPorts` permits every name if it has the peer `toEntities: world | all`.
//   - A `toFQDNs` peer, and a peer that selects nothing, never permits asking.
//   - If no rule of the endpoint has `rules.dns`, `dns.without-rules: allow` permits every name. `dns.without-rules: deny` permits no name,
//     except when a rule permits every name.
//   - If a rule has `rules.dns`, but the endpoint's default is `allow` or `audit`, the endpoint can ask every name.
//   - A deny rule for any peer that covers port 53 denies every name, because deny beats allow.
//   - ClusterNetworkPolicies have their place before and after these rules. If the first rule of the Admin tier that covers port 53 for
//     some server, and does not cover all ports, accepts, then it permits every name. So does the Baseline tier, for an endpoint that is not
//     in default deny. Their `domainNames` permit names, and never restrict.
// Only the deny rules, default deny and `rules.dns` of policies that are not audited (`enforced`) restrict. The allow rules of audited
// policies permit names like other allow rules. UDP and TCP have separate results: an entry applies to its protocol, and an entry for ANY
// applies to both protocols. But if an entry for one protocol has `rules.dns`, the endpoint has `rules.dns` for both protocols.
//
// If the client chooses the server (`upstreams.original-destination`), there are two conditions:
//   - The server must be admitted at its port. The endpoint's default can admit the server, or a rule can, with or without `rules.dns`. The
//     peers of this rule include the server, and its ports include the port. If a deny rule covers the server and port, the server is not
//     admitted, because deny beats allow.
//   - The name must be permitted. An admitting rule without `rules.dns` permits every name, and one with `rules.dns` permits the names
//     that its patterns match. Every name is permitted if no rule has `rules.dns` (`dns.without-rules: allow`), or if the endpoint's
//     default is `allow` or `audit`.
// The tiers of ClusterNetworkPolicies admit or refuse the server as they do packets: Admin before the rules above, Baseline after them.
// A `toFQDNs` peer includes no server in either condition. `default-egress: allow-named` admits servers as `allow` does, because asking is
// how addresses get names.

import { ANY_PROTOCOL, type DnsProtocol, type PortRange } from '../../core/protocol.ts'
import type { Pattern } from '../match/pattern.ts'
import type { Peers, PeerSelector, Policy, PortRule, Rule, RuleAction, Tier } from '../rule.ts'
import type { DefaultEgress } from './default-egress.ts'
import { decisionOf, namesOfTier, withoutTiers } from './dns-tiers.ts'

/** The names that an endpoint can ask over one protocol. */
export type DnsRules =
  | { readonly kind: 'every-name' }
  | { readonly kind: 'no-name' }
  | { readonly kind: 'names'; readonly patterns: readonly Pattern[] }

/** The port of queries that namegate intercepts. For queries to an explicit listener, policy is checked as if they used this port. */
export const DNS_PORT = 53

interface DnsOptions {
  readonly withoutRules: 'allow' | 'deny'
  readonly egress: DefaultEgress
  readonly protocol: DnsProtocol
}

/** Returns the names that an endpoint can ask if namegate chooses the server. `enforced`: the policies that restrict. */
export function compileDnsRules(
  policies: readonly Policy[],
  enforced: readonly Policy[],
  options: DnsOptions,
): DnsRules {
  const { protocol } = options
  const accepts = (tier: Tier['name']): boolean =>
    decisionOf(policies, tier, (rule) => decidesAsking(rule, protocol)) === 'allow'
  if (accepts('Admin')) return { kind: 'every-name' }
  const restricting = withoutTiers(enforced)
  if (restricting.some(({ rules }) => rules.some((rule) => deniesAsking(rule, protocol))))
    return { kind: 'no-name' }
  const isClosed = isDefaultDeny(enforced)
  if (!isClosed && accepts('Baseline')) return { kind: 'every-name' }
  const permitted = permittedRules(withoutTiers(policies), restricting, options)
  return widened(permitted, policies, isClosed)
}

/** Returns the names that policies without tiers permit, if none of them denies asking. */
function permittedRules(
  policies: readonly Policy[],
  enforced: readonly Policy[],
  { withoutRules, egress, protocol }: DnsOptions,
): DnsRules {
  const rules = policies.flatMap((policy) => policy.rules)
  const hasDns = enforced.some(hasDnsRules)
  if (!hasDns && withoutRules === 'allow') return { kind: 'every-name' }
  if (rules.some((rule) => permitsEveryName(rule, protocol))) return { kind: 'every-name' }
  if (!hasDns) return { kind: 'no-name' }
  if (egress === 'allow' || egress === 'audit') return { kind: 'every-name' }
  const patterns: Pattern[] = []
  for (const { peers, toPorts } of rules) {
    if (toPorts === undefined || !mayBeServer(peers)) continue
    for (const entry of toPorts)
      for (const pattern of patternsOf(entry, protocol)) patterns.push(pattern)
  }
  return { kind: 'names', patterns }
}

/** Adds the names of tiers to the names that an endpoint can ask. An endpoint in default deny (`isClosed`) has no Baseline tier. */
function widened(rules: DnsRules, policies: readonly Policy[], isClosed: boolean): DnsRules {
  if (rules.kind === 'every-name') return rules
  const baseline = isClosed ? [] : namesOfTier(policies, 'Baseline')
  const names = [...namesOfTier(policies, 'Admin'), ...baseline]
  if (names.length === 0) return rules
  return { kind: 'names', patterns: rules.kind === 'names' ? [...rules.patterns, ...names] : names }
}

/** True for a rule of a tier that can decide about asking any server: it covers port 53, and if it accepts, not all ports. */
function decidesAsking({ action, peers, toPorts }: Rule, protocol: DnsProtocol): boolean {
  if (!mayBeServer(peers)) return false
  if (toPorts === undefined) return action !== 'allow'
  return toPorts.some(({ ports }) =>
    ports.some((range) => coversDns(range, protocol) && (action !== 'allow' || namesPort(range))),
  )
}

function isDefaultDeny(enforced: readonly Policy[]): boolean {
  return enforced.some(({ defaultDeny }) => defaultDeny)
}

/** Returns true if both have the same kind and the same pattern objects in the same order. */
export function areSameRules(a: DnsRules, b: DnsRules): boolean {
  if (a.kind !== 'names' || b.kind !== 'names') return a.kind === b.kind
  const { patterns } = b
  return (
    a.patterns.length === patterns.length && a.patterns.every((each, i) => each === patterns[i])
  )
}

/** Returns true if some `toPorts` entry of the policy has `rules.dns`. */
export function hasDnsRules({ rules }: Policy): boolean {
  return rules.some((rule) => rule.toPorts?.some((entry) => entry.dns !== undefined))
}

/** Returns the patterns in `rules.dns` of an entry that covers port 53 over the protocol. For any other entry, returns none. */
export function patternsOf({ dns, ports }: PortRule, protocol: DnsProtocol): readonly Pattern[] {
  return dns !== undefined && ports.some((range) => coversDns(range, protocol)) ? dns : []
}

/** Returns true if an entry of an allow rule without `rules.dns` permits every name over the protocol. The header says when. */
export function permitsEveryName(rule: Rule, protocol: DnsProtocol): boolean {
  if (rule.action !== 'allow' || !mayBeServer(rule.peers)) return false
  const wide = hasEntity(rule.peers, ['world', 'all'])
  // The empty rule, which has no peers and no ports, allows nothing.
  if (rule.toPorts === undefined) return wide
  const anyServer = wide || rule.peers.kind === 'any'
  return rule.toPorts.some((entry) => {
    if (entry.dns !== undefined) return false
    const covering = entry.ports.filter((range) => coversDns(range, protocol))
    return anyServer ? covering.length > 0 : covering.some(namesPort)
  })
}

/** Returns true if the rule denies every name over the protocol: a deny rule for any peer that covers port 53. */
export function deniesAsking(rule: Rule, protocol: DnsProtocol): boolean {
  if (rule.action !== 'deny') return false
  const every = hasEntity(rule.peers, ['all'])
  if (rule.toPorts === undefined) return every
  if (!every && rule.peers.kind !== 'any') return false
  return rule.toPorts.some(({ ports }) => ports.some((range) => coversDns(range, protocol)))
}

/** Returns true if a peer can be a DNS server. A `toFQDNs` peer and a peer that selects nothing never are. */
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

/** Returns true if the range contains the port, and is for the protocol or for any protocol. */
export function coversPort(range: PortRange, port: number, protocol: DnsProtocol): boolean {
  const isFor = range.protocol === ANY_PROTOCOL || range.protocol === protocol
  return isFor && range.low <= port && port <= range.high
}

/** Returns false for a range that covers every port, because such an entry does not name a port. */
function namesPort({ low, high }: PortRange): boolean {
  return !(low === 0 && high === 65_535)
}

/** The names that an endpoint can ask one server, or `not-admitted` if it can ask this server nothing. */
export type ServerRules = DnsRules | { readonly kind: 'not-admitted' }

/** The server that a client asks, and the settings of the endpoint. */
export interface ServerQuery {
  readonly withoutRules: 'allow' | 'deny'
  /** The endpoint's default. It is `deny` if a policy turns default deny on. */
  readonly egress: DefaultEgress
  /** The port and protocol that the query was sent to. */
  readonly port: number
  readonly protocol: DnsProtocol
  /** True if the server is the address of a known endpoint or resource. */
  readonly isKnown: boolean
  /** Returns true if a peer selects the server. */
  readonly includes: (peer: Exclude<PeerSelector, { readonly kind: 'fqdn' }>) => boolean
}

/** The entry that stands for a rule without `toPorts`. */
const EVERY_PORT: PortRule = { ports: [], dns: undefined }

/** Returns the names that an endpoint can ask one server. `enforced`: the policies that restrict (those without audit, or all). */
export function serverRulesOf(
  policies: readonly Policy[],
  enforced: readonly Policy[],
  query: ServerQuery,
): ServerRules {
  const isClosed = isDefaultDeny(enforced)
  const ofTier = (tier: Tier['name']): RuleAction | undefined =>
    decisionOf(policies, tier, (rule) => entriesOf(rule, query).length > 0)
  const admin = ofTier('Admin')
  if (admin === 'allow') return { kind: 'every-name' }
  if (admin === 'deny') return { kind: 'not-admitted' }
  const [plain, restricting] = [withoutTiers(policies), withoutTiers(enforced)]
  const entriesFor = (of: readonly Policy[], action: RuleAction): readonly PortRule[] =>
    of
      .flatMap(({ rules }) => rules.filter((rule) => rule.action === action))
      .flatMap((rule) => entriesOf(rule, query))
  if (entriesFor(restricting, 'deny').length > 0) return { kind: 'not-admitted' }
  const entries = entriesFor(plain, 'allow')
  if (entries.length === 0) {
    const baseline = isClosed ? undefined : ofTier('Baseline')
    if (baseline === 'allow') return { kind: 'every-name' }
    if (baseline === 'deny' || !isOpen(query)) return { kind: 'not-admitted' }
  }
  return widened(admittedRules(entries, restricting, query), policies, isClosed)
}

/** Returns the names that policies without tiers permit at an admitted server. `entries`: the entries that admit it. */
function admittedRules(
  entries: readonly PortRule[],
  enforced: readonly Policy[],
  query: ServerQuery,
): DnsRules {
  const hasDns = enforced.some(hasDnsRules)
  if (!hasDns && query.withoutRules === 'allow') return { kind: 'every-name' }
  if (entries.some((entry) => entry.dns === undefined)) return { kind: 'every-name' }
  if (!hasDns) return { kind: 'no-name' }
  if (query.egress === 'allow' || query.egress === 'audit') return { kind: 'every-name' }
  return { kind: 'names', patterns: entries.flatMap((entry) => entry.dns ?? []) }
}

/** Returns the `toPorts` entries of a rule that cover the server, port and protocol of `query`. The empty rule covers nothing. */
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
