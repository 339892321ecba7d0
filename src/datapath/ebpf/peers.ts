// A pass over the established TCP connections (ng_conn) in slices: tells which peers an endpoint has open
// connections to, and clears out what has been idle for longer than `tcp-idle` or belongs to an endpoint or
// generation that is gone. Only connections that the endpoint began are told: those are the ones that stand
// on an address being known.
//
// The kernel side counts entries per (endpoint, generation) as they open and close; what is cleared here is
// counted in an entry that only this file writes, so that no count is ever written from two sides.

import { endpointId, type EndpointId, type Generation } from '../../core/ids.ts'
import type { Family } from '../../core/ip.ts'
import type { Bpf } from '../../native/native.ts'
import type { PeerScan } from '../datapath.ts'
import type { KernelMap, MapReader } from './kernel-map.ts'
import { encodeLong, MAP_SHAPES, readLong, readNumber } from './layout.ts'

const KEY = MAP_SHAPES.ng_conn.key
const VALUE = MAP_SHAPES.ng_conn.value
const FAMILY_AT = 9
const PEER_AT = 32
const BEGAN_AT = 8
const BEGAN_ENDPOINT = 1

/** Sides of ng_conn_count. */
const COUNT_KERNEL = 0
const COUNT_FREED = 1

export interface PeersOptions {
  readonly bpf: Bpf
  readonly connections: KernelMap
  readonly counts: KernelMap
  /** Octets of the kernel's keys are compared with this: the generation that an endpoint has now. */
  readonly generationOf: (id: EndpointId) => number
  /** An established TCP connection without traffic for so long counts as gone. */
  readonly idleMs: number
}

export class Peers {
  readonly #options: PeersOptions

  constructor(options: PeersOptions) {
    this.#options = options
  }

  scan(): PeerScan {
    const reader = this.#options.connections.reader()
    return { next: (limit, visit) => this.#next(reader, limit, visit) }
  }

  /** Away with the counts of a generation that is gone. */
  forget(id: EndpointId, generation: Generation): void {
    this.#options.counts.delete(countKey(id, generation, COUNT_KERNEL))
    this.#options.counts.delete(countKey(id, generation, COUNT_FREED))
  }

  #next(
    reader: MapReader,
    limit: number,
    visit: (endpoint: EndpointId, family: Family, peer: Uint8Array) => void,
  ): boolean {
    if (reader.done) return true
    const count = reader.read(limit)
    const { keys, values } = reader
    const { generationOf, idleMs, bpf } = this.#options
    const oldest = bpf.now() * 1e9 - idleMs * 1e6
    for (let i = 0; i < count; i++) {
      const key = i * KEY
      const id = endpointId(readNumber(keys, key))
      const current = generationOf(id) === readNumber(keys, key + 4)
      if (!current || readLong(values, i * VALUE) < oldest) {
        this.#clear(keys.subarray(key, key + KEY), current)
      } else if (values[i * VALUE + BEGAN_AT] === BEGAN_ENDPOINT) {
        const family: Family = keys[key + FAMILY_AT] === 4 ? 4 : 6
        visit(id, family, keys.subarray(key + PEER_AT, key + PEER_AT + 16))
      }
    }
    return reader.done
  }

  #clear(key: Uint8Array, counted: boolean): void {
    const { connections, counts } = this.#options
    if (connections.delete(key) !== 0 || !counted) return
    const freed = countKey(readNumber(key, 0), readNumber(key, 4), COUNT_FREED)
    const before = counts.get(freed)
    counts.set(freed, encodeLong((before === undefined ? 0 : readLong(before, 0)) + 1))
  }
}

function countKey(id: number, generation: number, side: number): Uint8Array {
  const numbers = new Uint32Array([id, generation, side])
  return new Uint8Array(numbers.buffer)
}
