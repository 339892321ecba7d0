// May this endpoint ask this name of this server, where the client chooses the server (`upstreams.original-destination`;
// docs/spec/semantics 2 "DNS"). Two questions:
//   - is the server admitted at that port: a rule whose peers include it and whose ports include the port, with
//     or without `rules.dns`, or a default that is open; no deny rule that covers it. Deny beats allow.
//   - may the name be asked: yes where such a rule has no `rules.dns`, or patterns that match; yes when no rule of the
//     endpoint has `rules.dns` (`dns.without-rules`) or nothing puts it into default deny.
// A `toFQDNs` peer includes no server, neither for the one nor for the other. With `default-egress: allow-named` asking
// is how addresses are named, so it admits the servers that are trusted, as the open defaults do.
// Only entries for the protocol that the client asks over count, those for ANY among them.

import type { DnsProtocol } from '../../core/protocol.ts'
import type { DefaultEgress } from './default-egress.ts'
import { coversPort, hasDnsRules, type DnsRules } from './dns-rules.ts'
import type { PeerSelector, Policy, PortRule, Rule } from '../rule.ts'

/** What may be asked of one server, or that it isn't admitted at all. */
export type ServerRules = DnsRules | { readonly kind: 'not-admitted' }

export interface ServerRulesOptions {
  readonly withoutRules: 'allow' | 'deny'
  /** `deny` where a policy turns default deny on. */
  readonly egress: DefaultEgress
  /** The port asked, and over what. */
  readonly port: number
  readonly protocol: DnsProtocol
  /** Whether the server is the address of a known endpoint or resource. */
  readonly isKnown: boolean
  /** Whether a peer selects the server. */
  readonly includes: (peer: Exclude<PeerSelector, { readonly kind: 'fqdn' }>) => boolean
}

/** A rule without `toPorts`, as an entry. */
const EVERY_PORT: PortRule = { ports: [], dns: undefined }

/** `taking` are those of the policies that take away: all of them, or those that are not audited (dns-rules.ts). */
export function serverRulesOf(
  policies: readonly Policy[],
  taking: readonly Policy[],
  to: ServerRulesOptions,
): ServerRules {
  const entriesFor = (of: readonly Policy[], action: Rule['action']): readonly PortRule[] =>
    of
      .flatMap(({ rules }) => rules.filter((rule) => rule.action === action))
      .flatMap((rule) => entriesOf(rule, to))
  if (entriesFor(taking, 'deny').length > 0) return { kind: 'not-admitted' }
  const entries = entriesFor(policies, 'allow')
  if (entries.length === 0 && !isOpen(to)) return { kind: 'not-admitted' }
  const hasDns = taking.some(hasDnsRules)
  if (!hasDns && to.withoutRules === 'allow') return { kind: 'every-name' }
  if (entries.some((entry) => entry.dns === undefined)) return { kind: 'every-name' }
  if (!hasDns) return { kind: 'no-name' }
  if (to.egress === 'allow' || to.egress === 'audit') return { kind: 'every-name' }
  return { kind: 'names', patterns: entries.flatMap((entry) => entry.dns ?? []) }
}

/** The entries of a rule that cover the server at its port over the protocol. The empty rule covers nothing. */
export function entriesOf({ peers, toPorts }: Rule, to: ServerRulesOptions): readonly PortRule[] {
  const included =
    peers.kind === 'any'
      ? toPorts !== undefined
      : peers.selectors.some((peer) => peer.kind !== 'fqdn' && to.includes(peer))
  if (!included) return []
  if (toPorts === undefined) return [EVERY_PORT]
  return toPorts.filter(({ ports }) =>
    ports.some((range) => coversPort(range, to.port, to.protocol)),
  )
}

function isOpen({ egress, isKnown }: ServerRulesOptions): boolean {
  return egress === 'allow-known' ? isKnown : egress !== 'deny'
}
