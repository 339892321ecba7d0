// Reads the entries in force from the datapath and shows each as texts: the name of its map, the key and the value. The memory datapath has
// no maps, but it has the same entries.

import { RESERVED_NAMES } from '../../identity/reserved.ts'
import { formatAddress, formatPrefix, type Family } from '../../core/ip.ts'
import { formatPortRange, formatProtocol } from '../../core/protocol.ts'
import type { AdoptedFlow } from '../../datapath/adoption.ts'
import type { DatapathDump, EndpointEntry, PolicyEntry, PolicyKey } from '../../datapath/entries.ts'
import { NODE_SCOPE } from '../../datapath/prefix-batch.ts'
import type { DatapathShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { ROWS_PER_PAUSE, type Rows } from './rows.ts'

export const MODE_KEY = 'mode'
/** Shown as the value of a source entry, which has no value of its own. */
export const SOURCE_VALUE = 'allowed'

export function* datapathRows({ core }: AdminState): Rows<DatapathShape> {
  const dump = yield* core.datapath.dumpInSlices()
  yield { map: 'ng_mode', key: MODE_KEY, value: dump.mode }
  yield* endpointEntries(dump)
  for (const [i, entry] of dump.policies.entries()) {
    if (i % ROWS_PER_PAUSE === 0) yield undefined
    yield { map: 'ng_policy', key: formatPolicyKey(entry), value: formatPolicyValue(entry) }
  }
  for (const [i, flow] of core.datapath.adoption.list().entries()) {
    if (i % ROWS_PER_PAUSE === 0) yield undefined
    yield { map: 'ng_adopted', key: formatFlowKey(flow), value: formatFlowValue(flow) }
  }
  const { prefixes } = dump
  for (let i = 0; i < prefixes.count; i++) {
    if (i % ROWS_PER_PAUSE === 0) yield undefined
    const value = formatPrefixValue(prefixes.identity(i), prefixes.addressClass(i))
    const key = formatPrefixKey(prefixes.scope(i), prefixes.format(i))
    yield { map: 'ng_ipcache', key, value }
  }
}

function* endpointEntries({ endpoints }: DatapathDump): Rows<DatapathShape> {
  for (const endpoint of endpoints) {
    const key = endpoint.hookKey === '' ? `endpoint ${endpoint.id}` : endpoint.hookKey
    yield { map: 'ng_endpoints', key, value: formatEndpointValue(endpoint) }
    for (const source of endpoint.sources) {
      const key = formatSourceKey(endpoint.id, formatPrefix(source))
      yield { map: 'ng_source', key, value: SOURCE_VALUE }
    }
  }
}

/** For example `endpoint 1 TCP 10.0.1.5:40000 to 198.51.100.9:443`. */
function formatFlowKey(flow: AdoptedFlow): string {
  const { endpoint, family, protocol, local, localPort, peer, peerPort } = flow
  const from = formatPlace(family, local, localPort)
  const to = formatPlace(family, peer, peerPort)
  return `endpoint ${endpoint} ${formatProtocol(protocol)} ${from} to ${to}`
}

/** For example `passes 540 s`. */
function formatFlowValue({ leftMs }: AdoptedFlow): string {
  return `passes ${Math.ceil(leftMs / 1000)} s`
}

function formatPlace(family: Family, octets: Uint8Array, port: number): string {
  const address = formatAddress(family, octets)
  return family === 4 ? `${address}:${port}` : `[${address}]:${port}`
}

/** `192.0.2.1/32`, or `endpoint 1 192.0.2.1/32` for a prefix in the view of endpoint 1. */
export function formatPrefixKey(scope: number, prefix: string): string {
  return scope === NODE_SCOPE ? prefix : `endpoint ${scope} ${prefix}`
}

/** For example `identity 16777217 class world-ipv4`. */
export function formatPrefixValue(identity: number, addressClass: number): string {
  const name = RESERVED_NAMES.get(addressClass) ?? String(addressClass)
  return `identity ${identity} class ${name.replace('reserved:', '')}`
}

/** For example `endpoint 1 identity 16777217 443/TCP`. Identity 0 means any identity. */
export function formatPolicyKey(key: PolicyKey): string {
  const { endpoint, identity, protocol, port, portBits } = key
  const ports = formatPortRange({ protocol, low: port, high: port | (0xffff >> portBits) })
  return `endpoint ${endpoint} identity ${identity} ${ports}`
}

/** For example `allow rule 3`. The number names the set of rules that made the entry (enforcement/rule-origins.ts). */
export function formatPolicyValue({
  verdict,
  rule,
}: Pick<PolicyEntry, 'verdict' | 'rule'>): string {
  return `${verdict} rule ${rule}`
}

/** For example `endpoint 1 generation 1 enforcing audit scoped`. */
export function formatEndpointValue(
  endpoint: Pick<EndpointEntry, 'id' | 'generation' | 'enforcing' | 'audit' | 'scoped'>,
): string {
  const { id, generation, enforcing, audit, scoped } = endpoint
  const scope = scoped === true ? ' scoped' : ''
  const flags = `${enforcing ? ' enforcing' : ''}${audit ? ' audit' : ''}${scope}`
  return `endpoint ${id} generation ${generation}${flags}`
}

export function formatSourceKey(endpoint: number, source: string): string {
  return `endpoint ${endpoint} ${source}`
}
