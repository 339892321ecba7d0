// `lintUnasked` finds rules with `toFQDNs` whose names no rule lets the endpoints ask. Such a rule allows nothing: an address has the labels
// of a name only after an answer. Without any `rules.dns` the key `dns.without-rules` decides, so the finding says what holds then. A rule
// that lets the names be asked can be in another policy, if that policy selects at least the same endpoints. `domainNames` of a
// ClusterNetworkPolicy let their names be asked themselves.

import { TCP, UDP } from '../core/protocol.ts'
import {
  hasDnsRules,
  mayBeServer,
  patternsOf,
  permitsEveryName,
} from '../policy/compile/dns-rules.ts'
import { domainNamesOf } from '../policy/compile/dns-tiers.ts'
import type { Pattern } from '../policy/match/pattern.ts'
import type { Policy, Rule } from '../policy/rule.ts'
import type { Finding } from './finding.ts'
import { selectsAtLeast } from './shadow.ts'
import { coversPattern } from './siblings.ts'

const PROTOCOLS = [UDP, TCP] as const

/** `withoutRules`: the key `dns.without-rules`. Returns one finding for each rule. */
export function lintUnasked(
  policies: readonly Policy[],
  withoutRules: 'allow' | 'deny',
): readonly Finding[] {
  return policies.flatMap((policy) => {
    if (policy.tier !== undefined) return []
    const all = policies.filter((other) => selectsAtLeast(other, policy))
    const asking = all.flatMap(({ rules }) => rules)
    if (asking.some((rule) => PROTOCOLS.some((protocol) => permitsEveryName(rule, protocol)))) {
      return []
    }
    const ofTiers = all.filter(({ tier }) => tier !== undefined).flatMap(({ rules }) => rules)
    const askable = [...asking.flatMap(askableIn), ...ofTiers.flatMap(domainNamesOf)]
    const hasDns = all.some(hasDnsRules)
    return policy.rules.flatMap((rule) => {
      const unasked = namesOf(rule).filter((name) => !askable.some((each) => meets(each, name)))
      return unasked.length === 0 ? [] : [finding(rule, unasked, hasDns, withoutRules)]
    })
  })
}

function askableIn(rule: Rule): readonly Pattern[] {
  if (rule.action !== 'allow' || !mayBeServer(rule.peers)) return []
  return (rule.toPorts ?? []).flatMap((entry) =>
    PROTOCOLS.flatMap((protocol) => patternsOf(entry, protocol)),
  )
}

function namesOf({ action, peers }: Rule): readonly Pattern[] {
  if (action !== 'allow' || peers.kind === 'any') return []
  return peers.selectors.flatMap((each) => (each.kind === 'fqdn' ? [each.pattern] : []))
}

/** True if some name can match both patterns. */
function meets(one: Pattern, other: Pattern): boolean {
  return coversPattern(one, other) || coversPattern(other, one)
}

function finding(
  { position }: Rule,
  names: readonly Pattern[],
  hasDns: boolean,
  withoutRules: 'allow' | 'deny',
): Finding {
  const list = names.map(({ text }) => text).join(', ')
  const message = `no rules.dns lets the endpoints ask ${list}: ${consequence(hasDns, withoutRules)}`
  const remedy = 'add a rule with toPorts 53, protocol ANY, and these names under rules.dns'
  return { position, code: 'never-asked', message, remedy }
}

function consequence(hasDns: boolean, withoutRules: 'allow' | 'deny'): string {
  const nothing = 'the rule allows nothing'
  if (hasDns) return nothing
  if (withoutRules === 'deny') return `${nothing} (dns.without-rules: deny)`
  return `${nothing} in Cilium, with dns.without-rules: deny, or once another policy of the endpoints has rules.dns`
}
