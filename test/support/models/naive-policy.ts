// A literal reading of docs/spec/semantics 2: from policies, endpoints and resolved names to the verdict on one packet. It has no labels
// of addresses, identities or entries, and checks every rule for every question. It is the oracle for the datapaths, in memory and in
// the kernel.

import { parseName } from '../../../src/core/name.ts'
import { containsPrefix, type Prefix } from '../../../src/core/ip.ts'
import { matches } from '../../../src/policy/match/pattern.ts'
import type { Entity, LabelSelector, PeerSelector, Policy, Rule } from '../../../src/policy/rule.ts'

export interface NaiveWorld {
  readonly nodeAddresses: readonly Prefix[]
  /** Addresses of known endpoints. */
  readonly endpointAddresses: readonly Prefix[]
  /** The labels of known endpoints and resources. Their prefixes are among `endpointAddresses`. */
  readonly labelled?: readonly { readonly prefix: Prefix; readonly labels: readonly string[] }[]
  /** Every (name, address) that an answer taught and that has not been forgotten. */
  readonly names: readonly { readonly name: string; readonly address: Prefix }[]
  /** `policies.cidr-matches-endpoints`: prefixes also select addresses of the node and of endpoints. */
  readonly cidrMatchesKnown?: boolean
}

export interface NaiveFlow {
  /** Labels of the endpoint that sends, `source:key=value`. */
  readonly labels: readonly string[]
  readonly peer: Prefix
  readonly protocol: number
  readonly port: number
}

export type NaiveVerdict = 'allow' | 'deny' | 'audit'

/** Deny beats allow. If no rule allows a packet, any policy that selects the endpoint denies it; without one, the default decides. Audited
 *  policies deny nothing: a packet that passes only for this reason is `audit`. */
export function naiveVerdict(
  world: NaiveWorld,
  policies: readonly Policy[],
  defaultEgress: 'allow' | 'audit' | 'deny',
  flow: NaiveFlow,
): NaiveVerdict {
  const labels = withNamespace(flow.labels)
  const selecting = policies.filter(({ namespace, selector }) => {
    const inside = namespace === undefined || labels.includes(`${NAMESPACE}=${namespace}`)
    return inside && fits(selector, labels)
  })
  const enforced = judge(world, selecting, defaultEgress, flow)
  if (enforced !== 'deny') return enforced
  const lenient = selecting.map((policy) => (policy.audited === true ? harmless(policy) : policy))
  return judge(world, lenient, defaultEgress, flow) === 'deny' ? 'deny' : 'audit'
}

function judge(
  world: NaiveWorld,
  selecting: readonly Policy[],
  defaultEgress: NaiveVerdict,
  flow: NaiveFlow,
): NaiveVerdict {
  const covers = (rule: Rule): boolean =>
    peersInclude(rule, world, flow.peer) && portsInclude(rule, flow)
  const admin = tierVerdict(selecting, 'Admin', covers)
  if (admin !== undefined) return admin
  const covering = selecting
    .filter(({ tier }) => tier === undefined)
    .flatMap((policy) => policy.rules)
    .filter(covers)
  if (covering.some((rule) => rule.action === 'deny')) return 'deny'
  if (covering.length > 0) return 'allow'
  if (selecting.some((policy) => policy.defaultDeny)) return 'deny'
  return tierVerdict(selecting, 'Baseline', covers) ?? defaultEgress
}

/**
 * A literal reading of the API: policies with lower priority values are checked first, and in each policy the first rule. Accept and Deny
 * are final, Pass skips to the next tier. The API leaves equal priorities open; here deny beats pass, and pass beats accept.
 */
function tierVerdict(
  selecting: readonly Policy[],
  name: 'Admin' | 'Baseline',
  covers: (rule: Rule) => boolean,
): 'allow' | 'deny' | undefined {
  const own = selecting.flatMap(({ tier, rules }) => (tier?.name === name ? { tier, rules } : []))
  const priorities = new Set(own.map(({ tier }) => tier.priority))
  for (const priority of [...priorities].sort((a, b) => a - b)) {
    const actions = own
      .filter(({ tier }) => tier.priority === priority)
      .flatMap(({ rules }) => rules.find(covers)?.action ?? [])
    if (actions.includes('deny')) return 'deny'
    if (actions.includes('pass')) return undefined
    if (actions.includes('allow')) return 'allow'
  }
  return undefined
}

/** The allow rules of an audited policy, without default deny. */
function harmless(policy: Policy): Policy {
  const rules = policy.rules.filter(({ action }) => action === 'allow')
  return { ...policy, rules, defaultDeny: false }
}

function peersInclude(rule: Rule, world: NaiveWorld, peer: Prefix): boolean {
  // No peer field means any peer, but the rule {} allows nothing.
  if (rule.peers.kind === 'any') return rule.toPorts !== undefined
  return rule.peers.selectors.some((selector) => selects(selector, world, peer))
}

function selects(selector: PeerSelector, world: NaiveWorld, peer: Prefix): boolean {
  switch (selector.kind) {
    case 'fqdn':
      return world.names.some(
        ({ name, address }) => isSame(address, peer) && matches(selector.pattern, wire(name)),
      )
    case 'cidr':
      return (
        (world.cidrMatchesKnown === true || classOf(world, peer) === 'world') &&
        containsPrefix(selector.prefix, peer) &&
        !selector.except.some((except) => containsPrefix(except, peer))
      )
    case 'entity':
      return isIn(selector.entity, classOf(world, peer), peer)
    case 'endpoints':
      return classOf(world, peer) === 'endpoint' && fits(selector.selector, labelsAt(world, peer))
  }
}

const NAMESPACE = 'k8s:io.kubernetes.pod.namespace'

/** Without a namespace label, the namespace is `default`. */
function withNamespace(labels: readonly string[]): readonly string[] {
  const hasNamespace = labels.some((label) => label.startsWith(`${NAMESPACE}=`))
  return hasNamespace ? labels : [...labels, `${NAMESPACE}=default`]
}

/** Labels of all prefixes around an address. For each key, the longest prefix decides. */
function labelsAt(world: NaiveWorld, peer: Prefix): readonly string[] {
  const around = (world.labelled ?? []).filter(({ prefix }) => containsPrefix(prefix, peer))
  const byKey = new Map<string, string>()
  for (const { labels } of around.sort((a, b) => a.prefix.length - b.prefix.length)) {
    for (const label of labels) byKey.set(label.split('=')[0] ?? '', label)
  }
  return withNamespace([...byKey.values()])
}

/** Checks every condition of a selector against all labels. */
function fits(selector: LabelSelector, labels: readonly string[]): boolean {
  const values = (key: string): readonly string[] =>
    labels.flatMap((label) => {
      const [name = '', value = ''] = label.split('=')
      return name === key || name.split(':')[1] === key ? [value] : []
    })
  const equal = [...selector.matchLabels].every(([key, value]) => values(key).includes(value))
  const holds = (selector.matchExpressions ?? []).every(({ key, operator, values: given }) => {
    const isPositive = operator === 'In' || operator === 'Exists'
    const wants = operator === 'In' || operator === 'NotIn' ? given : values(key)
    return values(key).some((value) => wants.includes(value)) === isPositive
  })
  return equal && holds
}

function portsInclude(rule: Rule, { protocol, port }: NaiveFlow): boolean {
  if (rule.toPorts === undefined) return true
  // A toPorts entry with DNS rules permits questions and opens no port.
  const ranges = rule.toPorts.filter(({ dns }) => dns === undefined).flatMap(({ ports }) => ports)
  return ranges.some((range) => {
    if (range.protocol === 0) return true
    return range.protocol === protocol && range.low <= port && port <= range.high
  })
}

function classOf(world: NaiveWorld, peer: Prefix): 'host' | 'endpoint' | 'world' {
  if (world.nodeAddresses.some((address) => isSame(address, peer))) return 'host'
  const known = world.endpointAddresses.some((prefix) => containsPrefix(prefix, peer))
  return known ? 'endpoint' : 'world'
}

function isIn(entity: Entity, of: 'host' | 'endpoint' | 'world', peer: Prefix): boolean {
  switch (entity) {
    case 'host':
      return of === 'host'
    case 'cluster':
      return of !== 'world'
    case 'world':
      return of === 'world'
    case 'world-ipv4':
      return of === 'world' && peer.family === 4
    case 'world-ipv6':
      return of === 'world' && peer.family === 6
    case 'all':
      return true
    case 'none':
      return false
  }
}

function isSame(a: Prefix, b: Prefix): boolean {
  return containsPrefix(a, b) && containsPrefix(b, a)
}

function wire(name: string): Uint8Array {
  const parsed = parseName(name)
  if (parsed.kind !== 'ok') throw new Error(`Cannot read name: ${parsed.reason}: received ${name}`)
  return parsed.name
}
