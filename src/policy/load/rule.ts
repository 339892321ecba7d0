// `readRule` reads one entry of `egress` or `egressDeny`: its peers and ports. namegate refuses the combinations of fields that Cilium
// refuses. So a file that both programs accept means the same in both.

import { containsPrefix, formatPrefix, parseMaskedPrefix, type Prefix } from '../../core/ip.ts'
import {
  hasUnsupported,
  isMapping,
  listWords,
  notSupported,
  type FieldTable,
  type Reader,
  type Unsupported,
} from '../../documents/source-document.ts'
import { readNames } from './names.ts'
import { type PortRules, readPortRules } from './ports.ts'
import { inNamespace, readSelector } from './selector.ts'
import type { Entity, PeerSelector, Peers, Rule } from '../rule.ts'

export const PEERS = ['toFQDNs', 'toEndpoints', 'toCIDR', 'toCIDRSet', 'toEntities'] as const
const RULE: readonly (readonly [string, true | string | Unsupported])[] = [
  ...PEERS.map((key) => [key, true] as const),
  ['toPorts', true],
  ['toRequires', notSupported('say it in toEndpoints')],
  ['toServices', notSupported('use toEndpoints, toFQDNs or toCIDR')],
  ['toGroups', notSupported('use toFQDNs or toCIDRSet')],
  ['toNodes', notSupported('use toEntities: [host] or toCIDR')],
  ['icmps', notSupported('a rule without toPorts is about ICMP as well')],
  ['authentication', notSupported('namegate decides by address and port')],
]
export const ALLOW_RULE: FieldTable = new Map(RULE)
export const DENY_RULE: FieldTable = new Map([
  ...RULE,
  ['toFQDNs', 'is not supported in egressDeny: names can only allow'],
])

export const CIDR_SET: FieldTable = new Map<string, true | Unsupported>([
  ['cidr', true],
  ['except', true],
  ['cidrGroupRef', notSupported('write the prefixes')],
  ['cidrGroupSelector', notSupported('write the prefixes')],
])

export const ENTITIES: readonly Entity[] = [
  'host',
  'cluster',
  'world',
  'world-ipv4',
  'world-ipv6',
  'all',
  'none',
]
/** Entities of Cilium that namegate does not support, and what a policy can use in their place. */
const OTHER_ENTITIES: ReadonlyMap<string, string> = new Map([
  ['init', 'endpoints are known with their labels or not at all'],
  ['ingress', 'use toCIDR'],
  ['unmanaged', 'use toEntities: [cluster] or toCIDR'],
  ['remote-node', 'use toCIDR, or a resource and toEndpoints'],
  ['health', 'use toCIDR'],
  ['kube-apiserver', 'use toCIDR, or a resource and toEndpoints'],
])

const NO_PORTS: PortRules = { rules: [], everyPort: false }

/**
 * Reads one rule. Returns no rule for `{}`, which allows and denies nothing, and for an allow rule with an unsupported field. A deny rule
 * with an unsupported field is always a fault, because namegate cannot know what the rule denies. Returns two rules if an entry of
 * `toPorts` means every port and other entries have DNS rules or ports. `namespace` is undefined for a clusterwide policy.
 */
export function readRule(
  reader: Reader,
  action: Rule['action'],
  namespace: string | undefined,
): readonly Rule[] {
  const table = action === 'allow' ? ALLOW_RULE : DENY_RULE
  const fields = (action === 'allow' ? reader : reader.strict()).fields(table)
  if (fields === undefined) return []
  refuseNothing(reader)
  const peers = readPeers(fields, namespace)
  const ports = fields.get('toPorts')
  const { rules: portRules, everyPort } =
    ports === undefined ? NO_PORTS : readPortRules(ports, action)
  if (hasUnsupported(fields, table)) return []
  if (peers.kind === 'any' && portRules.length === 0 && !everyPort) return []
  const { position } = reader
  const whole: Rule = { action, peers, toPorts: undefined, position }
  if (portRules.length === 0) return [whole]
  const parts: Rule = { action, peers, toPorts: portRules, position }
  return everyPort ? [whole, parts] : [parts]
}

/**
 * Refuses a key without a value, for example a key whose list is commented out. Kubernetes reads such a key as absent. A rule without
 * peers then means any peer, which the author of the key did not want.
 */
function refuseNothing(reader: Reader): void {
  if (!isMapping(reader.value) || !Object.values(reader.value).includes(null)) return
  for (const [, value] of reader.entries() ?? []) {
    if (value.value === null) value.fault('found nothing, expected a list; [] selects nothing')
  }
}

/** Reads the peers. A rule without a peer field means any peer. A rule whose peer fields are all empty selects nothing. */
function readPeers(fields: ReadonlyMap<string, Reader>, namespace: string | undefined): Peers {
  const kinds: readonly (readonly [string, (item: Reader) => PeerSelector | undefined])[] = [
    ['toFQDNs', readFqdn],
    ['toEndpoints', (item) => readEndpoints(item, namespace)],
    ['toCIDR', readCidr],
    ['toCIDRSet', readCidrSet],
    ['toEntities', readEntity],
  ]
  const present = kinds.filter(([key]) => fields.has(key))
  if (present.length === 0) return { kind: 'any' }
  const selectors: PeerSelector[] = []
  let first: string | undefined
  for (const [key, read] of present) {
    const field = fields.get(key)
    const items = field?.items() ?? []
    if (items.length === 0) continue
    if (first !== undefined) {
      field?.fault(`can not stand beside ${first} in one rule; write two rules`, 'key')
    }
    first ??= key
    for (const item of items) {
      const selector = read(item)
      if (selector !== undefined) selectors.push(selector)
    }
  }
  return { kind: 'selectors', selectors }
}

/** Reads a toFQDNs entry, which must have either matchName or matchPattern, and not both. */
function readFqdn(reader: Reader): PeerSelector | undefined {
  const patterns = readNames(reader)
  if (patterns === undefined) return undefined
  const [pattern] = patterns
  if (pattern === undefined || patterns.length > 1) {
    return reader.fault('found both matchName and matchPattern, expected one of them')
  }
  return { kind: 'fqdn', pattern }
}

function readEndpoints(reader: Reader, namespace: string | undefined): PeerSelector | undefined {
  const selector = readSelector(reader, { isPeer: true })
  if (selector === undefined) return undefined
  return { kind: 'endpoints', selector: inNamespace(selector, namespace) }
}

function readCidr(reader: Reader): PeerSelector | undefined {
  const prefix = readPrefix(reader)
  return prefix === undefined ? undefined : { kind: 'cidr', prefix, except: [] }
}

/** Reads an entry of toCIDRSet, or an ipBlock of a NetworkPolicy, which has the same fields. */
export function readCidrSet(reader: Reader): PeerSelector | undefined {
  const fields = reader.fields(CIDR_SET)
  if (fields === undefined) return undefined
  if (hasUnsupported(fields, CIDR_SET)) return undefined
  const cidr = fields.get('cidr')
  if (cidr === undefined) return reader.fault('found no cidr, expected one')
  const prefix = readPrefix(cidr)
  const except: Prefix[] = []
  for (const item of fields.get('except')?.items() ?? []) {
    const inner = readPrefix(item)
    if (inner === undefined) continue
    if (prefix !== undefined && !containsPrefix(prefix, inner)) {
      item.expected(`a prefix inside ${String(cidr.value)}`)
    }
    except.push(inner)
  }
  return prefix === undefined ? undefined : { kind: 'cidr', prefix, except }
}

/** Reads a prefix. A prefix with host bits is read as the prefix around it, and noted. */
export function readPrefix(reader: Reader): Prefix | undefined {
  const text = reader.text('a prefix, such as 10.0.0.0/8')
  if (text === undefined) return undefined
  const result = parseMaskedPrefix(text)
  if (result.kind === 'bad') return reader.fault(result.reason)
  if (result.masked) reader.note(`host bits are masked: ${text} is ${formatPrefix(result.prefix)}`)
  return result.prefix
}

function readEntity(reader: Reader): PeerSelector | undefined {
  const text = reader.text(listWords(ENTITIES))
  if (text === undefined) return undefined
  const entity = ENTITIES.find((each) => each === text)
  if (entity !== undefined) return { kind: 'entity', entity }
  const instead = OTHER_ENTITIES.get(text)
  if (instead !== undefined)
    return reader.unsupported(`${text} ${notSupported(instead).unsupported}`)
  return reader.expected(listWords(ENTITIES))
}
