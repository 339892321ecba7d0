// Adopted manages ng_adopting and ng_adopted, the connections that are older than enforcement. For the first minute the programs
// add connections that they recognize from segments. This file adds the connections that conntrack listed, and removes
// connections whose time is over.

import { endpointId, type EndpointId, type Generation } from '../../../core/ids.ts'
import type { Family } from '../../../core/ip.ts'
import type { Bpf } from '../../../native/native.ts'
import type { AdoptedFlow, Adoption, FlowTuple } from '../../adoption.ts'
import type { KernelMap } from './kernel-map.ts'
import { encodeLong, encodeNumber, MAP_SHAPES, readLong, readNumber } from './layout.ts'

const KEY = MAP_SHAPES.ng_adopted.key
const VALUE = MAP_SHAPES.ng_adopted.value
const ORIGIN_AT = 8
const ORIGIN_LISTED = 1
const NS_PER_MS = 1e6
const NS_PER_SECOND = 1e9

export interface AdoptedOptions {
  readonly bpf: Bpf
  readonly adopting: KernelMap
  readonly adopted: KernelMap
}

export class Adopted {
  readonly #options: AdoptedOptions
  #refused = 0

  constructor(options: AdoptedOptions) {
    this.#options = options
  }

  /** How many listed connections the map refused so far. */
  get refused(): number {
    return this.#refused
  }

  /** Adopts the listed connections. Returns how many the map accepted. */
  adopt({ endpoint, generation, passMs, learnMs, flows }: Adoption): number {
    const { adopting, adopted } = this.#options
    const now = this.#now()
    this.#sweep((_, until) => until <= now)
    const passUntil = encodeLong(Math.round(now + passMs * NS_PER_MS))
    const learnUntil = encodeLong(Math.round(now + Math.min(learnMs, passMs) * NS_PER_MS))
    adopting.set(ownerKey(endpoint, generation), Buffer.concat([learnUntil, passUntil]))
    const keys = new Uint8Array(flows.length * KEY)
    const values = new Uint8Array(flows.length * VALUE)
    flows.forEach((flow, i) => {
      encodeFlow(endpoint, generation, flow, keys.subarray(i * KEY, (i + 1) * KEY))
      values.set(passUntil, i * VALUE)
      values.set(encodeNumber(ORIGIN_LISTED), i * VALUE + ORIGIN_AT)
    })
    let refused = 0
    adopted.update(keys, values, flows.length, () => refused++)
    this.#refused += refused
    return flows.length - refused
  }

  /** `generationOf` returns the generation that an endpoint has now. */
  list(generationOf: (id: EndpointId) => number): readonly AdoptedFlow[] {
    const now = this.#now()
    const found: AdoptedFlow[] = []
    this.#options.adopted.forEach((keys, key, values, value) => {
      const endpoint = endpointId(readNumber(keys, key))
      const leftMs = (readLong(values, value) - now) / NS_PER_MS
      if (leftMs <= 0 || generationOf(endpoint) !== readNumber(keys, key + 4)) return
      found.push({ ...decodeFlow(keys.slice(key, key + KEY)), endpoint, leftMs })
    })
    return found
  }

  /** Removes everything of a generation. Reads the connections only if the generation had an adoption. */
  forget(id: EndpointId, generation: Generation): void {
    const owner = ownerKey(id, generation)
    if (this.#options.adopting.get(owner) === undefined) return
    this.#options.adopting.delete(owner)
    this.#sweep((key) => readNumber(key, 0) === id && readNumber(key, 4) === generation)
  }

  #now(): number {
    return this.#options.bpf.now() * NS_PER_SECOND
  }

  #sweep(isOver: (key: Uint8Array, until: number) => boolean): void {
    const { adopted } = this.#options
    const over: Uint8Array[] = []
    adopted.forEach((keys, at, values, value) => {
      const key = keys.slice(at, at + KEY)
      if (isOver(key, readLong(values, value))) over.push(key)
    })
    if (over.length > 0) adopted.remove(Buffer.concat(over), over.length, () => undefined)
  }
}

function ownerKey(id: EndpointId, generation: Generation): Uint8Array {
  return Buffer.concat([encodeNumber(id), encodeNumber(generation)])
}

/** Encodes a connection as `struct conn_key` of layout.h. */
function encodeFlow(
  id: EndpointId,
  generation: Generation,
  flow: FlowTuple,
  into: Uint8Array,
): void {
  into.set(ownerKey(id, generation))
  const view = new DataView(into.buffer, into.byteOffset)
  view.setUint8(8, flow.protocol)
  view.setUint8(9, flow.family)
  view.setUint16(10, flow.localPort)
  view.setUint16(12, flow.peerPort)
  into.set(flow.local.subarray(0, 16), 16)
  into.set(flow.peer.subarray(0, 16), 32)
}

function decodeFlow(key: Uint8Array): FlowTuple {
  const view = new DataView(key.buffer, key.byteOffset)
  const family: Family = key[9] === 4 ? 4 : 6
  return {
    family,
    protocol: key[8]!,
    local: key.slice(16, 32),
    localPort: view.getUint16(10),
    peer: key.slice(32, 48),
    peerPort: view.getUint16(12),
  }
}
