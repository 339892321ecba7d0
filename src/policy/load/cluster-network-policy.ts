// `readClusterSpec` reads the egress part of the spec of a ClusterNetworkPolicy (policy.networking.k8s.io/v1alpha2), with the limits of its
// API: at most 25 rules, peers of a rule, networks, names and protocols; exactly one field in a subject, peer, protocol and port.
//   - `*.example.com` in `domainNames` matches one or more DNS labels, so it becomes the pattern `**.example.com`.
//   - A peer by namespace selects only endpoints and resources that have a namespace.
//   - `networks` also mean addresses of known endpoints and of the node, which only `policies.cidr-matches-endpoints: true` compares with
//     prefixes. Without this setting, `networks` are a fault, because a Deny rule would deny less than it says.

import {
  listWords,
  notSupported,
  type FieldTable,
  type Reader,
  type Unsupported,
} from '../../documents/source-document.ts'
import { NAMESPACE_KEY } from '../match/labels.ts'
import type { LabelSelector, PeerSelector, Rule, RuleAction, Tier } from '../rule.ts'
import { readProtocols } from './cluster-ports.ts'
import { readDomainName } from './domain-name.ts'
import { onlyField } from './only-field.ts'
import { both, readNamespaces } from './pods.ts'
import { readPrefix } from './rule.ts'
import { readSelector } from './selector.ts'
import { EGRESS_ONLY, type Spec } from './spec.ts'

/** The most items of every list, as in the API. */
export const ITEMS_MAX = 25
export const PRIORITY_MAX = 1000
export const RULE_NAME_MAX = 100

export const CLUSTER_SPEC: FieldTable = new Map([
  ['tier', true],
  ['priority', true],
  ['subject', true],
  ['ingress', true],
  ['egress', true],
])
export const SUBJECT: FieldTable = new Map([
  ['namespaces', true],
  ['pods', true],
])
export const PODS: FieldTable = new Map([
  ['namespaceSelector', true],
  ['podSelector', true],
])
export const CLUSTER_RULE: FieldTable = new Map<string, true | string>([
  ['name', true],
  ['action', true],
  ['to', true],
  ['protocols', true],
  ['ports', 'is a field of v1alpha1: write protocols'],
])
export const CLUSTER_PEER: FieldTable = new Map<string, true | Unsupported>([
  ['namespaces', true],
  ['pods', true],
  ['networks', true],
  ['domainNames', true],
  ['nodes', notSupported('labels of nodes are not known; write their addresses as networks')],
])
export const TIERS: readonly Tier['name'][] = ['Admin', 'Baseline']
export const ACTIONS: ReadonlyMap<string, RuleAction> = new Map([
  ['Accept', 'allow'],
  ['Deny', 'deny'],
  ['Pass', 'pass'],
])

export interface ClusterOptions {
  /** As in LoadOptions. */
  readonly ingress: 'error' | 'ignore'
  /** `policies.cidr-matches-endpoints` */
  readonly cidrMatchesEndpoints: boolean
}

/** Reads the spec. Returns undefined after a fault in its form. */
export function readClusterSpec(
  reader: Reader,
  options: ClusterOptions,
): (Spec & { readonly tier: Tier }) | undefined {
  const fields = reader.fields(CLUSTER_SPEC)
  if (fields === undefined) return undefined
  const tier = readTier(reader, fields.get('tier'), fields.get('priority'))
  const ingress = fields.get('ingress')
  if (options.ingress === 'error') ingress?.fault(EGRESS_ONLY, 'key')
  const items = readList(fields.get('egress'), 0)
  const rules = items.flatMap((item) => readRule(item, options) ?? [])
  const subject = fields.get('subject')
  if (subject === undefined) {
    return reader.fault('found no subject, expected one; `namespaces: {}` selects every pod')
  }
  const selector = readSubject(subject)
  if (tier === undefined || selector === undefined) return undefined
  const spec = { selector, rules, tier, defaultDeny: false, position: reader.position }
  return ingress === undefined ? spec : { ...spec, halfEnforced: true }
}

function readTier(
  spec: Reader,
  tier: Reader | undefined,
  priority: Reader | undefined,
): Tier | undefined {
  const form = `a whole number from 0 to ${PRIORITY_MAX}`
  if (tier === undefined) spec.fault(`found no tier, expected ${listWords(TIERS)}`)
  if (priority === undefined) spec.fault(`found no priority, expected ${form}`)
  const name = TIERS.find((each) => each === tier?.value)
  if (name === undefined) tier?.expected(listWords(TIERS))
  const number = priority?.value
  const isPriority =
    typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= PRIORITY_MAX
  if (!isPriority) return priority?.expected(form)
  return name === undefined ? undefined : { name, priority: number }
}

function readSubject(reader: Reader): LabelSelector | undefined {
  const only = onlyField(reader, SUBJECT)
  if (only === undefined) return undefined
  return only.key === 'pods' ? readPods(only.field) : readNamespaces(only.field)
}

function readPods(reader: Reader): LabelSelector | undefined {
  const fields = reader.fields(PODS)
  const [namespaces, pods] = [fields?.get('namespaceSelector'), fields?.get('podSelector')]
  if (fields !== undefined && namespaces === undefined) {
    reader.fault('found no namespaceSelector, expected one; `{}` selects every namespace')
  }
  if (fields !== undefined && pods === undefined) {
    reader.fault('found no podSelector, expected one; `{}` selects every pod')
  }
  const inside = namespaces === undefined ? undefined : readNamespaces(namespaces)
  const those = pods === undefined ? undefined : readSelector(pods)
  return inside === undefined || those === undefined ? undefined : both(inside, those)
}

/**
 * Reads one rule. An Accept rule with an unsupported field is left out, and so matches nothing. In other rules such a field is always a
 * fault. This is what the API calls to fail closed.
 */
function readRule(reader: Reader, options: ClusterOptions): Rule | undefined {
  const fields = reader.fields(CLUSTER_RULE)
  if (fields === undefined) return undefined
  refuseNothing(reader)
  const name = readName(fields.get('name'))
  const action = readAction(reader, fields.get('action'))
  const to = fields.get('to')
  if (to === undefined) return reader.fault('found no to, expected one peer at least')
  const items = readList(to, 1)
  const checked = action === 'allow' ? items : items.map((item) => item.strict())
  const peers = checked.map((item) => readPeer(item, action, options))
  const protocols = fields.get('protocols')
  const toPorts =
    protocols === undefined
      ? undefined
      : [readProtocols(readList(protocols, 1), { action, hasPortNames: peers.every(hasPortNames) })]
  const read = peers.flatMap((each) => each ?? [])
  if (action === undefined || read.length < peers.length) return undefined
  return {
    action,
    ...(name !== undefined && { name }),
    peers: { kind: 'selectors', selectors: read.flat() },
    toPorts,
    position: reader.position,
  }
}

/** Kubernetes reads a key without a value like an absent key. Without `protocols`, a rule would match every port. */
function refuseNothing(reader: Reader): void {
  for (const [, value] of reader.entries() ?? []) {
    if (value.value === null) value.fault('found nothing, expected a value')
  }
}

function readName(reader: Reader | undefined): string | undefined {
  const text = reader?.text()
  if (text !== undefined && text.length > RULE_NAME_MAX) {
    reader?.fault(`found ${text.length} characters, expected at most ${RULE_NAME_MAX}`)
  }
  return text
}

function readAction(rule: Reader, reader: Reader | undefined): RuleAction | undefined {
  const words = listWords([...ACTIONS.keys()])
  if (reader === undefined) return rule.fault(`found no action, expected ${words}`)
  return ACTIONS.get(typeof reader.value === 'string' ? reader.value : '') ?? reader.expected(words)
}

/** Reads one peer. Returns undefined after a fault, and for a field that is not supported. */
function readPeer(
  reader: Reader,
  action: RuleAction | undefined,
  options: ClusterOptions,
): readonly PeerSelector[] | undefined {
  const only = onlyField(reader, CLUSTER_PEER)
  if (only === undefined) return undefined
  const { key, field } = only
  switch (key) {
    case 'namespaces':
      return inNamespaces(readNamespaces(field))
    case 'pods':
      return inNamespaces(readPods(field))
    case 'networks':
      return readNetworks(field, options)
    case 'domainNames':
      if (action !== 'allow') {
        return field.fault('is supported in Accept rules only: names can only allow', 'key')
      }
      return readList(field, 1).flatMap((item): readonly PeerSelector[] => {
        const pattern = readDomainName(item)
        return pattern === undefined ? [] : [{ kind: 'fqdn', pattern }]
      })
    default:
      return undefined
  }
}

function inNamespaces(selector: LabelSelector | undefined): readonly PeerSelector[] | undefined {
  if (selector === undefined) return undefined
  const key = `k8s:${NAMESPACE_KEY}`
  const isSaid = selector.matchLabels.has(key)
  const exists = {
    matchLabels: new Map(),
    matchExpressions: [{ key, operator: 'Exists', values: [] }],
  } as const
  return [{ kind: 'endpoints', selector: isSaid ? selector : both(selector, exists) }]
}

function readNetworks(
  reader: Reader,
  { cidrMatchesEndpoints }: ClusterOptions,
): readonly PeerSelector[] | undefined {
  if (!cidrMatchesEndpoints) {
    return reader.fault(
      'found networks, which also mean addresses of endpoints and of the node, expected policies.cidr-matches-endpoints: true in the configuration',
      'key',
    )
  }
  return readList(reader, 1).flatMap((item): readonly PeerSelector[] => {
    const prefix = readPrefix(item)
    return prefix === undefined ? [] : [{ kind: 'cidr', prefix, except: [] }]
  })
}

/** True for a peer whose addresses can have named ports: endpoints and resources. */
function hasPortNames(peers: readonly PeerSelector[] | undefined): boolean {
  return peers === undefined || peers.every(({ kind }) => kind === 'endpoints')
}

/** Returns the items of a list of `min` to 25 items. */
function readList(reader: Reader | undefined, min: number): readonly Reader[] {
  const items = reader?.items() ?? []
  const isBad = Array.isArray(reader?.value) && (items.length < min || items.length > ITEMS_MAX)
  if (isBad) reader?.fault(`found ${items.length} items, expected ${min} to ${ITEMS_MAX}`)
  return items
}
