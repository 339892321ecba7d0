// Policies that select an endpoint -> what the datapath and the proxy need to know, in terms of selectors
// (not of identities, which come and go). Endpoints with the same policies share one result.

import type { Identity } from '../../core/ids.ts'
import {
  byDnsProtocol,
  EVERYTHING,
  type ByDnsProtocol,
  type PortRange,
} from '../../core/protocol.ts'
import {
  ANY_IDENTITY,
  ENDPOINT_CLASS,
  HOST,
  RESOURCE_CLASS,
  WORLD_IPV4,
  WORLD_IPV6,
} from '../../identity/reserved.ts'
import { answerRulesOf, type AnswerRules } from './answer-rules.ts'
import type { DefaultEgress } from './default-egress.ts'
import { areSameRules, compileDnsRules, type DnsRules } from './dns-rules.ts'
import type { Coverage } from './flatten.ts'
import type { Entity, Policy, Rule } from '../rule.ts'
import type { SelectorSpec } from '../../identity/selector-cache.ts'

/** What a coverage or an entry came from. */
export interface RuleOrigin {
  readonly policy: Policy
  readonly rule: Rule
}

/** Origin of what no rule but a default made. */
export const DEFAULT_ORIGIN = 0

/** What the policies of an endpoint say about packets. */
export interface CompiledEntries {
  readonly policies: readonly Policy[]
  readonly defaultDeny: boolean
  /** Origins of the policies that turn default deny on and are not audited, ascending. */
  readonly denying: readonly number[]
  /** What holds for what no rule speaks of; `deny` where a policy turns default deny on. */
  readonly egress: DefaultEgress
  /** Coverages of peers that are a whole class, at the class's number; identity 0 for any peer. */
  readonly levels: ReadonlyMap<Identity, readonly Coverage[]>
  readonly selectors: readonly {
    readonly spec: SelectorSpec
    readonly coverages: readonly Coverage[]
  }[]
  /** Whether `allow-named` applies: what the endpoint learns is to carry `reserved:named` in its own scope. */
  readonly named: boolean
}

export interface CompiledPolicy extends CompiledEntries {
  /** What may be asked if no policy were audited. */
  readonly dns: ByDnsProtocol<DnsRules>
  /** What may be asked without what audited policies take away; undefined when none is audited. */
  readonly auditedDns: ByDnsProtocol<DnsRules> | undefined
  /** Undefined when the configuration holds for all answers. */
  readonly answers: AnswerRules | undefined
}

export interface CompileOptions {
  readonly defaultEgress: DefaultEgress
  readonly withoutDnsRules: 'allow' | 'deny'
  /** Number of a rule's origin, without rule of the policy's default deny; stable while the policy object lives. */
  readonly originOf: (policy: Policy, rule?: Rule) => number
}

/** The classes that an entity stands for; ANY_IDENTITY for all of them. */
const CLASSES_OF: Readonly<Record<Entity, readonly Identity[]>> = {
  host: [HOST],
  cluster: [HOST, ENDPOINT_CLASS, RESOURCE_CLASS],
  world: [WORLD_IPV4, WORLD_IPV6],
  'world-ipv4': [WORLD_IPV4],
  'world-ipv6': [WORLD_IPV6],
  all: [ANY_IDENTITY],
  none: [],
}

/** Whether an entity stands for a class of addresses. */
export function coversClass(entity: Entity, addressClass: Identity): boolean {
  const classes = CLASSES_OF[entity]
  return classes.includes(addressClass) || classes.includes(ANY_IDENTITY)
}

/** What each default opens that is a whole class; `allow-named` opens by label alone. */
const DEFAULT_LEVELS: Readonly<Record<DefaultEgress, readonly Identity[]>> = {
  allow: [ANY_IDENTITY],
  audit: [ANY_IDENTITY],
  'allow-named': [],
  'allow-known': [ENDPOINT_CLASS, RESOURCE_CLASS],
  deny: [],
}

/** Compiles the policies that select one endpoint. */
export function compilePolicies(
  policies: readonly Policy[],
  options: CompileOptions,
): CompiledPolicy {
  const dnsAs = (enforced: readonly Policy[]): ByDnsProtocol<DnsRules> => {
    const egress = egressAs(enforced, options.defaultEgress)
    const withoutRules = options.withoutDnsRules
    return byDnsProtocol(
      (protocol) => compileDnsRules(policies, enforced, { withoutRules, egress, protocol }),
      areSameRules,
    )
  }
  const enforced = policies.filter(({ audited }) => audited !== true)
  return {
    ...compileEntries(policies, options),
    dns: dnsAs(policies),
    auditedDns: enforced.length < policies.length ? dnsAs(enforced) : undefined,
    answers: answerRulesOf(policies),
  }
}

/** What of it is entries of the datapath. */
export function compileEntries(
  policies: readonly Policy[],
  options: Omit<CompileOptions, 'withoutDnsRules'>,
): CompiledEntries {
  const levels = new Map<Identity, Coverage[]>()
  const selectors: { readonly spec: SelectorSpec; readonly coverages: readonly Coverage[] }[] = []
  const denying = policies.filter((policy) => policy.defaultDeny && policy.audited !== true)
  const defaultDeny = denying.length > 0
  const addLevel = (level: Identity, coverages: readonly Coverage[]): void => {
    levels.set(level, [...(levels.get(level) ?? []), ...coverages])
  }
  for (const policy of policies) {
    for (const rule of policy.rules) {
      const coverages = coveragesOf(policy, rule, options.originOf(policy, rule))
      if (coverages.length === 0) continue
      if (rule.peers.kind === 'any') {
        if (rule.toPorts !== undefined) addLevel(ANY_IDENTITY, coverages)
        continue
      }
      for (const peer of rule.peers.selectors) {
        if (peer.kind !== 'entity') selectors.push({ spec: peer, coverages })
        else for (const level of CLASSES_OF[peer.entity]) addLevel(level, coverages)
      }
    }
  }
  const egress = egressAs(denying, options.defaultEgress)
  const everything = defaultCoverages(policies, egress, options)
  for (const level of DEFAULT_LEVELS[egress]) addLevel(level, everything)
  const named = egress === 'allow-named'
  if (named) selectors.push({ spec: { kind: 'named' }, coverages: everything })
  return {
    policies,
    defaultDeny,
    denying: denying.map((policy) => options.originOf(policy)).toSorted((a, b) => a - b),
    egress,
    levels,
    selectors,
    named,
  }
}

/** What holds for what no rule speaks of, where those policies can take away. */
export function egressAs(enforced: readonly Policy[], otherwise: DefaultEgress): DefaultEgress {
  return enforced.some((policy) => policy.defaultDeny) ? 'deny' : otherwise
}

/** What a default lets pass; reported as what audited policies that turn default deny on would have denied. */
function defaultCoverages(
  policies: readonly Policy[],
  egress: DefaultEgress,
  { originOf }: Pick<CompileOptions, 'originOf'>,
): readonly Coverage[] {
  const auditing = policies.filter((policy) => policy.defaultDeny && policy.audited === true)
  const action = egress === 'audit' || auditing.length > 0 ? 'audit' : 'allow'
  const origins = auditing.length === 0 ? [DEFAULT_ORIGIN] : auditing.map((each) => originOf(each))
  return origins.map((origin) => ({ action, range: EVERYTHING, origin }))
}

/** The ports a rule opens or closes in the datapath; a `toPorts` entry with DNS rules opens nothing. */
function coveragesOf(policy: Policy, rule: Rule, origin: number): readonly Coverage[] {
  const action = rule.action === 'deny' && policy.audited === true ? 'audit-deny' : rule.action
  if (rule.toPorts === undefined) return [{ action, range: EVERYTHING, origin }]
  return rule.toPorts
    .filter((entry) => entry.dns === undefined)
    .flatMap((entry) => entry.ports)
    .map((range: PortRange) => ({ action, range, origin }))
}
