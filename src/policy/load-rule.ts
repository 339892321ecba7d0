// One entry of `egress` or `egressDeny`: its peers and what may stand beside what. The combinations that
// Cilium refuses are refused here too, so that a file means the same in both or is taken by neither.

import { containsPrefix, parsePrefix, type Prefix } from '../core/ip.ts'
import { listWords, type FieldTable, type Reader } from '../core/source-document.ts'
import { readNames } from './load-names.ts'
import { readPortRules } from './load-ports.ts'
import type { Entity, PeerSelector, Peers, Rule } from './rule.ts'

const NOT_SUPPORTED = 'is not supported'
const RULE: readonly (readonly [string, true | string])[] = [
  ['toFQDNs', true],
  ['toCIDR', true],
  ['toCIDRSet', true],
  ['toEntities', true],
  ['toPorts', true],
  ['toEndpoints', 'is not built yet'],
  ['toRequires', NOT_SUPPORTED],
  ['toServices', NOT_SUPPORTED],
  ['toGroups', NOT_SUPPORTED],
  ['toNodes', NOT_SUPPORTED],
  ['icmps', NOT_SUPPORTED],
  ['authentication', NOT_SUPPORTED],
]
const ALLOW_RULE: FieldTable = new Map(RULE)
const DENY_RULE: FieldTable = new Map([
  ...RULE,
  ['toFQDNs', 'is not supported in egressDeny: names say what is allowed'],
])

const CIDR_SET: FieldTable = new Map<string, true | string>([
  ['cidr', true],
  ['except', true],
  ['cidrGroupRef', NOT_SUPPORTED],
  ['cidrGroupSelector', NOT_SUPPORTED],
])

const ENTITIES: readonly Entity[] = [
  'host',
  'cluster',
  'world',
  'world-ipv4',
  'world-ipv6',
  'all',
  'none',
]
/** Entities of Cilium that have no meaning here. */
const OTHER_ENTITIES: readonly string[] = [
  'init',
  'ingress',
  'unmanaged',
  'remote-node',
  'health',
  'kube-apiserver',
]

/** The rule, or none for `{}`, which allows and denies nothing. */
export function readRule(reader: Reader, action: Rule['action']): readonly Rule[] {
  const fields = reader.fields(action === 'allow' ? ALLOW_RULE : DENY_RULE)
  if (fields === undefined) return []
  refuseNothing(reader)
  const peers = readPeers(fields)
  const ports = fields.get('toPorts')
  const portRules = ports === undefined ? [] : readPortRules(ports, action)
  if (peers.kind === 'any' && portRules.length === 0) return []
  const toPorts = portRules.length === 0 ? undefined : portRules
  return [{ action, peers, toPorts, position: reader.position }]
}

/**
 * A key without a value, as when its list is commented out. Kubernetes takes it for an absent key, and a rule
 * whose peers are absent means any peer: that is not what whoever wrote the key wanted.
 */
function refuseNothing(reader: Reader): void {
  for (const [, value] of reader.entries() ?? []) {
    if (value.value === null) value.fault('found nothing, expected a list; [] selects nothing')
  }
}

/** No peer field: any peer. One that is there and empty selects nothing. */
function readPeers(fields: ReadonlyMap<string, Reader>): Peers {
  const kinds: readonly (readonly [string, (item: Reader) => PeerSelector | undefined])[] = [
    ['toFQDNs', readFqdn],
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

/** A toFQDNs entry has exactly one of matchName and matchPattern. */
function readFqdn(reader: Reader): PeerSelector | undefined {
  const patterns = readNames(reader)
  if (patterns === undefined) return undefined
  const [pattern] = patterns
  if (pattern === undefined || patterns.length > 1) {
    return reader.fault('found both matchName and matchPattern, expected one of them')
  }
  return { kind: 'fqdn', pattern }
}

function readCidr(reader: Reader): PeerSelector | undefined {
  const prefix = readPrefix(reader)
  return prefix === undefined ? undefined : { kind: 'cidr', prefix, except: [] }
}

function readCidrSet(reader: Reader): PeerSelector | undefined {
  const fields = reader.fields(CIDR_SET)
  if (fields === undefined) return undefined
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

function readPrefix(reader: Reader): Prefix | undefined {
  const text = reader.text('a prefix, such as 10.0.0.0/8')
  if (text === undefined) return undefined
  const result = parsePrefix(text)
  return result.kind === 'ok' ? result.prefix : reader.fault(result.reason)
}

function readEntity(reader: Reader): PeerSelector | undefined {
  const text = reader.text(listWords(ENTITIES))
  if (text === undefined) return undefined
  const entity = ENTITIES.find((each) => each === text)
  if (entity !== undefined) return { kind: 'entity', entity }
  if (OTHER_ENTITIES.includes(text)) return reader.fault(`${text} is not supported`)
  return reader.expected(listWords(ENTITIES))
}
