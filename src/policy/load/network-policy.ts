// `readNetworkSpec` reads the egress part of the spec of a `networking.k8s.io/v1` NetworkPolicy, as Kubernetes and Cilium do:
//   - Keys of podSelectors match labels of any source, so they also select endpoints and resources that files define.
//   - Keys of namespaceSelectors match only labels of the source `k8s:`, because a namespace is a boundary.
//   - A rule without `to` means every destination. A rule without `ports` means every port.
//   - Peers of one rule can be of several kinds.

import { SCTP, TCP, UDP } from '../../core/protocol.ts'
import { isMapping, type FieldTable, type Reader } from '../../documents/source-document.ts'
import { NAMESPACE_KEY } from '../match/labels.ts'
import { both, readNamespaces } from './pods.ts'
import { portRule, readEndPort, type ReadPort, readPortNumber } from './ports.ts'
import { readCidrSet } from './rule.ts'
import { readSelector } from './selector.ts'
import type { Spec } from './spec.ts'
import type { PeerSelector, PortRule, Rule } from '../rule.ts'

const EGRESS_ONLY = 'namegate decides egress only'
export const SPEC: FieldTable = new Map([
  ['podSelector', true],
  ['policyTypes', true],
  ['egress', true],
  ['ingress', true],
])
export const RULE: FieldTable = new Map([
  ['to', true],
  ['ports', true],
])
export const PEER: FieldTable = new Map([
  ['podSelector', true],
  ['namespaceSelector', true],
  ['ipBlock', true],
])
export const PORT: FieldTable = new Map([
  ['port', true],
  ['endPort', true],
  ['protocol', true],
])
export const PROTOCOLS: ReadonlyMap<string, number> = new Map([
  ['TCP', TCP],
  ['UDP', UDP],
  ['SCTP', SCTP],
])
const PORT_FORM = 'a port from 1 to 65535, or the name of one'

/** Reads the spec. Returns undefined after a fault in its form. `namespace` is the policy's, `ingress` is as in LoadOptions. */
export function readNetworkSpec(
  reader: Reader,
  namespace: string,
  ingress: 'error' | 'ignore',
): Spec | undefined {
  const fields = reader.fields(SPEC)
  if (fields === undefined) return undefined
  const items = fields.get('egress')?.items() ?? []
  const rules = items.flatMap((item) => readRule(item, namespace))
  const types = readTypes(fields.get('policyTypes'))
  const isEgress = types?.includes('Egress') ?? items.length > 0
  const isIngress = (types?.includes('Ingress') ?? true) || fields.has('ingress')
  if (items.length > 0 && !isEgress) {
    fields.get('policyTypes')?.fault('found no Egress beside egress rules, expected [Egress]')
  }
  if (isIngress && ingress === 'error') refuseIngress(reader, fields)
  const podSelector = fields.get('podSelector')
  if (podSelector === undefined) {
    return reader.fault('found no podSelector, expected one; `{}` selects every pod')
  }
  const selector = readSelector(podSelector)
  if (selector === undefined) return undefined
  const spec = { selector, rules, defaultDeny: isEgress, position: reader.position }
  return isIngress ? { ...spec, halfEnforced: true } : spec
}

/** Reports one fault where the policy restricts ingress too: at `ingress`, at `policyTypes`, or at the spec when it has neither field. */
function refuseIngress(reader: Reader, fields: ReadonlyMap<string, Reader>): void {
  const said = fields.get('ingress') ?? fields.get('policyTypes')
  if (said !== undefined) said.fault(`Ingress is not supported: ${EGRESS_ONLY}`, 'key')
  else
    reader.fault(
      `found no policyTypes, which means Ingress as well: ${EGRESS_ONLY}, expected [Egress]`,
    )
}

function readTypes(reader: Reader | undefined): readonly string[] | undefined {
  const items = reader?.items()
  if (items === undefined || items.length === 0) return undefined
  return items.flatMap((item) => {
    const type = item.text('Ingress or Egress')
    if (type === undefined || type === 'Ingress' || type === 'Egress') return type ?? []
    item.expected('Ingress or Egress')
    return []
  })
}

/** Reads one rule. The rule `{}` allows everything. In a CiliumNetworkPolicy it allows nothing. */
function readRule(reader: Reader, namespace: string): readonly Rule[] {
  const fields = reader.fields(RULE)
  if (fields === undefined) return []
  for (const [, value] of reader.entries() ?? []) {
    // Kubernetes reads a key without a value like an absent key, which would allow every destination or every port.
    if (value.value === null) value.fault('found nothing, expected a list')
  }
  const to = fields.get('to')?.items() ?? []
  const ports = fields.get('ports')?.items() ?? []
  const selectors: readonly PeerSelector[] =
    to.length === 0
      ? [{ kind: 'entity', entity: 'all' }]
      : to.flatMap((item) => readPeer(item, namespace) ?? [])
  const toPorts = ports.length === 0 ? undefined : [readPorts(ports)]
  const peers = { kind: 'selectors', selectors } as const
  return [{ action: 'allow', peers, toPorts, position: reader.position }]
}

function readPeer(reader: Reader, namespace: string): PeerSelector | undefined {
  const fields = reader.fields(PEER)
  if (fields === undefined) return undefined
  const [pods, namespaces] = [fields.get('podSelector'), fields.get('namespaceSelector')]
  const block = fields.get('ipBlock')
  if (block !== undefined) {
    if (pods !== undefined || namespaces !== undefined) {
      block.fault('can not stand beside a selector in one peer; write two peers', 'key')
    }
    return readCidrSet(block)
  }
  if (pods === undefined && namespaces === undefined) {
    return reader.fault('found no podSelector, namespaceSelector or ipBlock, expected one')
  }
  const inside =
    namespaces === undefined
      ? { matchLabels: new Map([[`k8s:${NAMESPACE_KEY}`, namespace]]) }
      : readNamespaces(namespaces)
  const those = pods === undefined ? { matchLabels: new Map<string, string>() } : readSelector(pods)
  if (inside === undefined || those === undefined) return undefined
  return { kind: 'endpoints', selector: both(inside, those) }
}

function readPorts(items: readonly Reader[]): PortRule {
  return portRule(items.map(readPort), undefined)
}

/** Reads one entry of `ports`. Without `protocol` it means TCP, and without `port` it means every port. */
function readPort(reader: Reader): ReadPort {
  const fields = reader.fields(PORT)
  if (fields === undefined) return []
  if (isMapping(reader.value) && reader.value['port'] === null) {
    reader.fault('found no port behind port:, expected one')
  }
  const protocol = readProtocol(fields.get('protocol'))
  const [portReader, endReader] = [fields.get('port'), fields.get('endPort')]
  const end = endReader === undefined ? undefined : readEndPort(endReader)
  if (portReader === undefined) {
    endReader?.fault('can not stand without port', 'key')
    return protocol === undefined ? [] : [{ protocol, low: 0, high: 65_535 }]
  }
  const port = readPortNumber(portReader)
  if (port === 0) portReader.expected(PORT_FORM)
  if (port === undefined || protocol === undefined) return []
  if (typeof port === 'string') {
    endReader?.fault('can not stand beside a named port')
    return { name: port, protocols: [protocol] }
  }
  if (endReader !== undefined && end !== undefined && end < port) {
    endReader.expected(`${port} or more, as port is`)
  }
  return [{ protocol, low: port, high: end ?? port }]
}

function readProtocol(reader: Reader | undefined): number | undefined {
  if (reader === undefined) return TCP
  const text = reader.text('TCP, UDP or SCTP')
  if (text === undefined) return undefined
  return PROTOCOLS.get(text) ?? reader.expected('TCP, UDP or SCTP')
}
