// `askingOf` and `askingAt` make the rules about DNS questions that DnsVerdicts needs, from an endpoint's compiled policies. Each result
// has the rules with audited policies enforced, the rules without audited policies, and the numbers of the rules that deny.
// PolicyControl calls `askingOf` when an endpoint's rules come into force. DnsVerdicts calls `askingAt` when the endpoint first asks a
// server of a new kind that the client chose itself.

import { byDnsProtocol, type ByDnsProtocol } from '../core/protocol.ts'
import { ENDPOINT_CLASS, RESOURCE_CLASS } from '../identity/reserved.ts'
import { coversClass, egressAs, type CompiledPolicy } from '../policy/compile/compile.ts'
import {
  deniesAsking,
  entriesOf,
  hasDnsRules,
  type ServerRules,
  serverRulesOf,
  type ServerQuery,
} from '../policy/compile/dns-rules.ts'
import type { Policy, Rule } from '../policy/rule.ts'
import type { CoreState } from './core-state.ts'
import type { AskingRules, DnsServer } from './dns-verdicts.ts'

export interface AskingParts {
  readonly core: Pick<CoreState, 'origins' | 'selectors'>
  readonly compiled: CompiledPolicy
  /** `dns.without-rules` */
  readonly withoutRules: 'allow' | 'deny'
}

/** The rules for questions to the configured servers. */
export function askingOf({ core, compiled }: AskingParts): ByDnsProtocol<AskingRules> {
  const { dns, auditedDns, policies } = compiled
  return byDnsProtocol(
    (protocol) => ({
      rules: dns[protocol],
      audited: auditedDns?.[protocol],
      ...deniers(core, policies, (rule) => deniesAsking(rule, protocol)),
    }),
    (udp, tcp) =>
      udp.rules === tcp.rules &&
      udp.audited === tcp.audited &&
      udp.deniedBy === tcp.deniedBy &&
      udp.auditedBy === tcp.auditedBy,
  )
}

/** The rules for questions to a server that the client chose. */
export function askingAt(
  { core, compiled, withoutRules }: AskingParts,
  { addressClass, identity, port, protocol }: DnsServer,
): AskingRules {
  const { policies, egress, auditedDns } = compiled
  const to: ServerQuery = {
    withoutRules,
    egress,
    port,
    protocol,
    isKnown: addressClass === ENDPOINT_CLASS || addressClass === RESOURCE_CLASS,
    includes: (peer) => {
      if (peer.kind === 'entity') return coversClass(peer.entity, addressClass)
      return core.selectors.find(peer)?.identities.has(identity) === true
    },
  }
  const rulesAs = (taking: readonly Policy[]): ServerRules =>
    serverRulesOf(policies, taking, { ...to, egress: egressAs(taking, egress) })
  const denies = (rule: Rule): boolean => rule.action === 'deny' && entriesOf(rule, to).length > 0
  return {
    rules: rulesAs(policies),
    audited: auditedDns === undefined ? undefined : rulesAs(policies.filter(isEnforced)),
    ...deniers(core, policies, denies),
  }
}

function deniers(
  { origins }: Pick<CoreState, 'origins'>,
  policies: readonly Policy[],
  denies: (rule: Rule) => boolean,
): Pick<AskingRules, 'deniedBy' | 'auditedBy'> {
  const numberOf = (of: readonly Policy[]): number => {
    const found = denying(of, denies).map(([policy, rule]) => origins.originOf(policy, rule))
    return origins.setOf([...new Set(found)].toSorted((a, b) => a - b))
  }
  return {
    deniedBy: numberOf(policies.filter(isEnforced)),
    auditedBy: numberOf(policies.filter((policy) => !isEnforced(policy))),
  }
}

/**
 * Returns what denies a question: the deny rules. If there are none, the policies that turn default deny on. If there are none either,
 * the policies with DNS rules, because none of these rules permits the name.
 */
function denying(
  policies: readonly Policy[],
  denies: (rule: Rule) => boolean,
): readonly (readonly [Policy, Rule?])[] {
  const rules = policies.flatMap((policy) =>
    policy.rules.filter(denies).map((rule) => [policy, rule] as const),
  )
  if (rules.length > 0) return rules
  const closed = policies.filter((policy) => policy.defaultDeny)
  return (closed.length > 0 ? closed : policies.filter(hasDnsRules)).map((policy) => [policy])
}

function isEnforced({ audited }: Policy): boolean {
  return audited !== true
}
