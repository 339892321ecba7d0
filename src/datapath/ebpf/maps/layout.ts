// This file encodes keys and values of the kernel maps as octets. It must match layout.h, so change both together. Numbers are in
// the machine's byte order, except numbers inside which a prefix must match. Those are big-endian. LAYOUT_VERSION names the pin
// directory, so two layouts never share a map.

import type { HookKey } from '../../hooks/find-hook.ts'
import { endianness } from 'node:os'
import {
  endpointId,
  generation,
  identity,
  ruleId,
  type EndpointId,
  type Generation,
} from '../../../core/ids.ts'
import type { Family, Prefix } from '../../../core/ip.ts'
import type { ListenerEntry, Mode, PolicyEntry, PolicyKey, PolicyVerdict } from '../../entries.ts'
import { PREFIX_KEY_HEAD_BITS, PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE } from '../../prefix-batch.ts'

export const LAYOUT_VERSION = 4

/** Key and value sizes of every map, in octets. */
export const MAP_SHAPES = {
  ng_mode: { key: 4, value: 4 },
  ng_config: { key: 4, value: 16 },
  ng_ipcache: { key: PREFIX_KEY_SIZE, value: PREFIX_VALUE_SIZE },
  ng_hosts: { key: PREFIX_KEY_SIZE, value: PREFIX_VALUE_SIZE },
  ng_endpoints: { key: 16, value: 16 },
  ng_source: { key: PREFIX_KEY_SIZE, value: 4 },
  ng_policy: { key: 16, value: 8 },
  ng_conn: { key: 48, value: 16 },
  ng_conn_new: { key: 48, value: 32 },
  ng_flow_slot: { key: 12, value: 48 },
  ng_flow_turn: { key: 8, value: 16 },
  ng_conn_count: { key: 12, value: 8 },
  ng_listeners: { key: 24, value: 4 },
  ng_dns_source: { key: 20, value: 4 },
  ng_gate: { key: 20, value: 4 },
  ng_adopting: { key: 8, value: 16 },
  ng_adopted: { key: 48, value: 16 },
  ng_intercepted: { key: 4, value: 24 },
  ng_stats: { key: 4, value: 8 },
} as const

export type MapName = keyof typeof MAP_SHAPES

/** Names of the counters, in the order of `enum stat`. */
export const STAT_NAMES = [
  'verdict_allow',
  'verdict_reply',
  'verdict_listener',
  'verdict_neighbour',
  'verdict_audit',
  'verdict_not_enforcing',
  'verdict_bypass',
  'drop_policy',
  'drop_source',
  'drop_malformed',
  'drop_fragment',
  'drop_no_endpoint',
  'connections_over_limit',
  'connections_table_full',
  'events_lost',
  'events_sampled_out',
  'verdict_intercepted',
  'verdict_adopted',
  'adopted_table_full',
  'flows_over_share',
  'flows_table_full',
] as const

const MODES: readonly Mode[] = ['enforce', 'audit', 'bypass']
const VERDICTS: readonly PolicyVerdict[] = [
  'allow',
  'deny',
  'audit',
  'audit-deny',
  'audit-pass',
  'weak-deny',
]

const LITTLE = endianness() === 'LE'

export interface EndpointValue {
  readonly id: EndpointId
  readonly generation: Generation
  readonly enforcing: boolean
  readonly audit: boolean
  readonly scoped: boolean
  /** True for a fence: no endpoint, DNS only (src/datapath/ebpf/hooks/fences.ts). */
  readonly fenced: boolean
  /** True when the programs are on the hook. Until then the gate drops the hook's packets. */
  readonly attached: boolean
  readonly layer3: boolean
}

const HOOK_KINDS = { interface: 1, cgroup: 2 } as const
const FLAG_ENFORCING = 1
const FLAG_AUDIT = 2
const FLAG_SCOPED = 4
const FLAG_LAYER3 = 32
const FLAG_FENCED = 64
const FLAG_ATTACHED = 128

export function encodeNumber(value: number): Uint8Array {
  const octets = new Uint8Array(4)
  new DataView(octets.buffer).setUint32(0, value, LITTLE)
  return octets
}

/** An unsigned 32-bit number in the machine's byte order. */
export function readNumber(octets: Uint8Array, at: number): number {
  return new DataView(octets.buffer, octets.byteOffset).getUint32(at, LITTLE)
}

/** An unsigned 64-bit number, exact up to 2^53. */
export function readLong(octets: Uint8Array, at: number): number {
  return Number(new DataView(octets.buffer, octets.byteOffset).getBigUint64(at, LITTLE))
}

export function encodeLong(value: number): Uint8Array {
  const octets = new Uint8Array(8)
  new DataView(octets.buffer).setBigUint64(0, BigInt(value), LITTLE)
  return octets
}

export function encodeMode(mode: Mode): Uint8Array {
  return encodeNumber(MODES.indexOf(mode))
}

/** A number that is no mode means `enforce`, as in the kernel. */
export function decodeMode(octets: Uint8Array): Mode {
  return MODES[readNumber(octets, 0)] ?? 'enforce'
}

export function encodeHookKey(key: HookKey): Uint8Array {
  const octets = new Uint8Array(MAP_SHAPES.ng_endpoints.key)
  const view = new DataView(octets.buffer)
  view.setUint32(0, HOOK_KINDS[key.kind], LITTLE)
  view.setBigUint64(8, BigInt(key.id), LITTLE)
  return octets
}

export function decodeHookKey(octets: Uint8Array, at: number): HookKey {
  const kind = readNumber(octets, at) === HOOK_KINDS.cgroup ? 'cgroup' : 'interface'
  return { kind, id: readLong(octets, at + 8) }
}

export function encodeEndpoint(value: EndpointValue): Uint8Array {
  const octets = new Uint8Array(MAP_SHAPES.ng_endpoints.value)
  const view = new DataView(octets.buffer)
  view.setUint32(0, value.id, LITTLE)
  view.setUint32(4, value.generation, LITTLE)
  const flags =
    (value.enforcing ? FLAG_ENFORCING : 0) |
    (value.audit ? FLAG_AUDIT : 0) |
    (value.scoped ? FLAG_SCOPED : 0) |
    (value.layer3 ? FLAG_LAYER3 : 0) |
    (value.fenced ? FLAG_FENCED : 0) |
    (value.attached ? FLAG_ATTACHED : 0)
  view.setUint32(8, flags, LITTLE)
  return octets
}

export function decodeEndpoint(octets: Uint8Array, at: number): EndpointValue {
  const flags = readNumber(octets, at + 8)
  return {
    id: endpointId(readNumber(octets, at)),
    generation: generation(readNumber(octets, at + 4)),
    enforcing: (flags & FLAG_ENFORCING) !== 0,
    audit: (flags & FLAG_AUDIT) !== 0,
    scoped: (flags & FLAG_SCOPED) !== 0,
    fenced: (flags & FLAG_FENCED) !== 0,
    attached: (flags & FLAG_ATTACHED) !== 0,
    layer3: (flags & FLAG_LAYER3) !== 0,
  }
}

/** A key of ng_source. It is like a key of ng_ipcache, with the endpoint in place of the scope. */
export function encodeSource(endpoint: EndpointId, prefix: Prefix): Uint8Array {
  const octets = new Uint8Array(PREFIX_KEY_SIZE)
  const view = new DataView(octets.buffer)
  view.setUint32(0, PREFIX_KEY_HEAD_BITS + prefix.length, LITTLE)
  view.setUint32(4, endpoint)
  view.setUint32(8, prefix.family)
  octets.set(prefix.octets, 12)
  return octets
}

export function decodeSource(octets: Uint8Array, at: number): readonly [EndpointId, Prefix] {
  const view = new DataView(octets.buffer, octets.byteOffset + at)
  const family: Family = view.getUint32(8) === 4 ? 4 : 6
  const length = view.getUint32(0, LITTLE) - PREFIX_KEY_HEAD_BITS
  return [endpointId(view.getUint32(4)), { family, octets: octets.slice(at + 12, at + 28), length }]
}

/** How many bits of a policy key must match: endpoint and identity, then the protocol, then bits of the port. */
function policyBits(key: PolicyKey): number {
  return key.protocol === 0 ? 64 : 72 + key.portBits
}

export function encodePolicyKey(key: PolicyKey, into: Uint8Array, at: number): void {
  const view = new DataView(into.buffer, into.byteOffset + at)
  view.setUint32(0, policyBits(key), LITTLE)
  view.setUint32(4, key.endpoint)
  view.setUint32(8, key.identity)
  view.setUint8(12, key.protocol)
  view.setUint16(13, key.port)
  view.setUint8(15, 0)
}

export function encodePolicyValue(entry: PolicyEntry, into: Uint8Array, at: number): void {
  const view = new DataView(into.buffer, into.byteOffset + at)
  view.setUint32(0, 0)
  view.setUint8(0, VERDICTS.indexOf(entry.verdict) + 1)
  view.setUint32(4, entry.rule, LITTLE)
}

export function decodePolicy(
  keys: Uint8Array,
  at: number,
  values: Uint8Array,
  valueAt: number,
): PolicyEntry {
  const view = new DataView(keys.buffer, keys.byteOffset + at)
  return {
    endpoint: endpointId(view.getUint32(4)),
    identity: identity(view.getUint32(8)),
    protocol: view.getUint8(12),
    port: view.getUint16(13),
    portBits: Math.max(0, view.getUint32(0, LITTLE) - 72),
    verdict: VERDICTS[values[valueAt]! - 1] ?? 'deny',
    rule: ruleId(readNumber(values, valueAt + 4)),
  }
}

/**
 * A key of ng_gate from a name, or from the beginning of a name and a final `*`. Undefined if no interface can have such a name.
 */
export function encodeGateName(pattern: string): Uint8Array | undefined {
  const isWhole = !pattern.endsWith('*')
  const name = Buffer.from(isWhole ? `${pattern}\0` : pattern.slice(0, -1))
  const octets = new Uint8Array(MAP_SHAPES.ng_gate.key)
  if (name.length > octets.length - 4 || pattern === '') return undefined
  octets.set(encodeNumber(name.length * 8))
  octets.set(name, 4)
  return octets
}

/** Returns the pattern from which `encodeGateName` made the key. */
export function decodeGateName(octets: Uint8Array, at: number): string {
  const length = readNumber(octets, at) / 8
  const name = Buffer.from(octets.subarray(at + 4, at + 4 + length)).toString()
  return name.endsWith('\0') ? name.slice(0, -1) : `${name}*`
}

export function encodeListener(listener: ListenerEntry): Uint8Array {
  const octets = new Uint8Array(MAP_SHAPES.ng_listeners.key)
  const view = new DataView(octets.buffer)
  view.setUint32(0, listener.family, LITTLE)
  view.setUint16(4, listener.port)
  octets.set(listener.octets, 8)
  return octets
}

export function decodeListener(octets: Uint8Array, at: number): ListenerEntry {
  const family = readNumber(octets, at) === 6 ? 6 : 4
  const port = (octets[at + 4]! << 8) | octets[at + 5]!
  return { family, octets: octets.slice(at + 8, at + (family === 4 ? 12 : 24)), port }
}

export function encodeDnsSource(
  protocol: number,
  family: Family,
  address: Uint8Array,
  port: number,
): Uint8Array {
  const octets = new Uint8Array(MAP_SHAPES.ng_dns_source.key)
  octets[0] = protocol
  octets[1] = family
  new DataView(octets.buffer).setUint16(2, port)
  octets.set(address, 4)
  return octets
}
