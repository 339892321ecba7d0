// `compilePolicies` compiles the policies that select an endpoint, for the datapath and for the proxy. The result uses selectors and not
// identities, because the identities that a selector selects change. Endpoints with the same policies use the same result.

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
import type { Action, Coverage, Turn } from './flatten.ts'
import { DEFAULT_TURN, mayContradict, turnOf } from './tiers.ts'
import type { Entity, Policy, Rule } from '../rule.ts'
import type { SelectorSpec } from '../../identity/selector-cache.ts'

/** The rule that a coverage or an entry was made from, with its policy. */
export interface RuleOrigin {
  readonly policy: Policy
  readonly rule: Rule
}

/** The origin of an entry that was made from the endpoint's default and not from a rule. */
export const DEFAULT_ORIGIN = 0

/** What the rules about one selector of a rule cover. */
interface SelectorCoverages {
  readonly spec: SelectorSpec
  readonly coverages: readonly Coverage[]
}

/** What the datapath enforces for an endpoint: its policies, in terms of selectors. */
export interface CompiledEntries {
  readonly policies: readonly Policy[]
  readonly defaultDeny: boolean
  /** Origins, ascending, of the policies that turn default deny on and are not audited. */
  readonly denying: readonly number[]
  /** The default for everything that no rule covers. It is `deny` when a policy that is not audited turns default deny on. */
  readonly egress: DefaultEgress
  /** Coverages of peers that are a whole class of addresses, by the reserved identity of the class. Identity 0 means any peer. */
  readonly levels: ReadonlyMap<Identity, readonly Coverage[]>
  readonly selectors: readonly SelectorCoverages[]
  /**
   * True if the rules about classes could contradict those about identities (tiers.ts). Then `levels` of each class include those of any
   * identity, and the entries of an identity must have the answers of its class too.
   */
  readonly complete: boolean
  /** True if the default is `allow-named`: addresses that the endpoint learns have the label `reserved:named` in its own scope. */
  readonly named: boolean
}

/** The compiled policies of an endpoint, for the datapath and the proxy. */
export interface CompiledPolicy extends CompiledEntries {
  /** The names that the endpoint could ask if no policy were audited. */
  readonly dns: ByDnsProtocol<DnsRules>
  /** The names that the endpoint can ask, because audited policies restrict nothing. Undefined when no policy is audited. */
  readonly auditedDns: ByDnsProtocol<DnsRules> | undefined
  /** The settings of documents for answers. Undefined when the configuration applies to all answers. */
  readonly answers: AnswerRules | undefined
}

export interface CompileOptions {
  readonly defaultEgress: DefaultEgress
  readonly withoutDnsRules: 'allow' | 'deny'
  /** Returns the number of a rule, or without `rule` the number of the policy's default deny. It does not change while `policy` exists. */
  readonly originOf: (policy: Policy, rule?: Rule) => number
}

const CLASSES: readonly Identity[] = [HOST, ENDPOINT_CLASS, RESOURCE_CLASS, WORLD_IPV4, WORLD_IPV6]

/**
 * The classes of addresses that an entity means. ANY_IDENTITY means all classes. Endpoints and resources are never told apart, here and in
 * DEFAULT_LEVELS, because one label set can belong to both (FlatRules).
 */
const CLASSES_OF: Readonly<Record<Entity, readonly Identity[]>> = {
  host: [HOST],
  cluster: [HOST, ENDPOINT_CLASS, RESOURCE_CLASS],
  world: [WORLD_IPV4, WORLD_IPV6],
  'world-ipv4': [WORLD_IPV4],
  'world-ipv6': [WORLD_IPV6],
  all: [ANY_IDENTITY],
  none: [],
}

/** Returns true if the entity includes the class of addresses. */
export function coversClass(entity: Entity, addressClass: Identity): boolean {
  const classes = CLASSES_OF[entity]
  return classes.includes(addressClass) || classes.includes(ANY_IDENTITY)
}

/** The classes that each default opens. `allow-named` opens no class, only addresses with the label `reserved:named`. */
const DEFAULT_LEVELS: Readonly<Record<DefaultEgress, readonly Identity[]>> = {
  allow: [ANY_IDENTITY],
  audit: [ANY_IDENTITY],
  'allow-named': [],
  'allow-known': [ENDPOINT_CLASS, RESOURCE_CLASS],
  deny: [],
}

/** Compiles the policies that select one endpoint, for the datapath and the proxy. */
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

/** Compiles only the part that becomes entries of the datapath. */
export function compileEntries(
  policies: readonly Policy[],
  options: Omit<CompileOptions, 'withoutDnsRules'>,
): CompiledEntries {
  const levels = new Map<Identity, Coverage[]>()
  const selectors: SelectorCoverages[] = []
  const denying = policies.filter((policy) => policy.defaultDeny && policy.audited !== true)
  const defaultDeny = denying.length > 0
  const addLevel = (level: Identity, coverages: readonly Coverage[]): void => {
    levels.set(level, [...(levels.get(level) ?? []), ...coverages])
  }
  const isTiered = policies.some(({ tier }) => tier !== undefined)
  const egress = egressAs(denying, options.defaultEgress)
  const everything = defaultCoverages(policies, egress, { ...options, isTiered })
  policies.forEach((policy, number) => {
    // What Baseline decides, default deny has decided before.
    if (policy.tier?.name === 'Baseline' && defaultDeny) return
    for (const rule of policy.rules) {
      const turn = turnOf(policy, rule, number)
      const found = coveragesOf(policy, rule, options.originOf(policy, rule), turn)
      const coverages = turn?.tier === 'Baseline' ? found.flatMap(asDefault(everything)) : found
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
  })
  for (const level of DEFAULT_LEVELS[egress]) addLevel(level, everything)
  const named = egress === 'allow-named'
  if (named) selectors.push({ spec: { kind: 'named' }, coverages: everything })
  const selected = selectors.flatMap(({ coverages }) => coverages)
  const complete = isTiered && mayContradict([...levels.values()].flat(), selected)
  return {
    policies,
    defaultDeny,
    denying: denying.map((policy) => options.originOf(policy)).toSorted((a, b) => a - b),
    egress,
    levels: complete ? byClass(levels) : levels,
    selectors,
    complete,
    named,
  }
}

/** Returns the coverages of each class, with those of any identity, and none of any identity. */
function byClass(
  levels: ReadonlyMap<Identity, readonly Coverage[]>,
): ReadonlyMap<Identity, readonly Coverage[]> {
  const any = levels.get(ANY_IDENTITY) ?? []
  return new Map(
    CLASSES.map((each) => [each, [...(levels.get(each) ?? []), ...any]] as const).filter(
      ([, coverages]) => coverages.length > 0,
    ),
  )
}

/**
 * Returns what an Accept rule of Baseline covers under a default that reports: it allows what the default deny of audited policies would
 * have denied before, so it reports this as the default does.
 */
function asDefault(everything: readonly Coverage[]): (coverage: Coverage) => readonly Coverage[] {
  const reporting = everything.filter(
    ({ action, origin }) => action === 'audit' && origin !== DEFAULT_ORIGIN,
  )
  return (coverage) =>
    coverage.action !== 'allow' || reporting.length === 0
      ? [coverage]
      : reporting.map(({ action, origin }) => ({ ...coverage, action, origin }))
}

/** Returns the default for everything that no rule covers, if only the policies in `enforced` restrict. */
export function egressAs(enforced: readonly Policy[], otherwise: DefaultEgress): DefaultEgress {
  return enforced.some((policy) => policy.defaultDeny) ? 'deny' : otherwise
}

/** Returns the coverages of a default. They report packets that audited policies with default deny would have denied. */
function defaultCoverages(
  policies: readonly Policy[],
  egress: DefaultEgress,
  { originOf, isTiered }: Pick<CompileOptions, 'originOf'> & { readonly isTiered: boolean },
): readonly Coverage[] {
  const auditing = policies.filter((policy) => policy.defaultDeny && policy.audited === true)
  const action = egress === 'audit' || auditing.length > 0 ? 'audit' : 'allow'
  const origins = auditing.length === 0 ? [DEFAULT_ORIGIN] : auditing.map((each) => originOf(each))
  const turn = isTiered ? { turn: DEFAULT_TURN } : {}
  return origins.map((origin) => ({ action, range: EVERYTHING, origin, ...turn }))
}

/** Returns the ports that a rule allows or denies in the datapath. A `toPorts` entry with DNS rules allows no packets. */
function coveragesOf(
  policy: Policy,
  rule: Rule,
  origin: number,
  turn: Turn | undefined,
): readonly Coverage[] {
  const isReported = rule.action === 'deny' && policy.audited === true
  const action: Action = isReported ? 'audit-deny' : rule.action
  const made = { action, origin, ...(turn && { turn }) }
  if (rule.toPorts === undefined) return [{ ...made, range: EVERYTHING }]
  return rule.toPorts
    .filter((entry) => entry.dns === undefined)
    .flatMap((entry) => entry.ports)
    .map((range: PortRange) => ({ ...made, range }))
}
