// A pass over the established TCP connections (ng_conn) in slices, then over flows of UDP and SCTP (ng_conn_new): tells which
// peers an endpoint has open connections to, and clears out TCP that has been idle for longer than `tcp-idle` or belongs to an
// endpoint or generation that is gone. Only connections that the endpoint began are told: those are the ones that stand
// on an address being known. A flow that is silent for so long that others push it out of ng_conn_new (LRU, 131,072) before
// `udp-idle` counts as over.
//
// The kernel side counts entries per (endpoint, generation) as they open and close; what is cleared here is
// counted in an entry that only this file writes, so that no count is ever written from two sides.

import { endpointId, type EndpointId, type Generation } from '../../core/ids.ts'
import type { Family } from '../../core/ip.ts'
import { SCTP, UDP } from '../../core/protocol.ts'
import type { Bpf } from '../../native/native.ts'
import type { PeerScan } from '../datapath.ts'
import type { KernelMap, MapReader } from './kernel-map.ts'
import { encodeLong, MAP_SHAPES, readLong, readNumber } from './layout.ts'

const KEY = MAP_SHAPES.ng_conn.key
const VALUE = MAP_SHAPES.ng_conn.value
const PROTOCOL_AT = 8
const FAMILY_AT = 9
const PEER_AT = 32
const BEGAN_AT = 8
const BEGAN_ENDPOINT = 1

/** Owner of tuples that are remembered whoever's they are. */
const NOBODY = 0

type VisitPeer = (endpoint: EndpointId, family: Family, peer: Uint8Array) => void

/** Sides of ng_conn_count. */
const COUNT_KERNEL = 0
const COUNT_FREED = 1

export interface PeersOptions {
  readonly bpf: Bpf
  readonly connections: KernelMap
  /** Half-open and ending TCP, UDP, SCTP, echoes, and tuples of nobody. */
  readonly others: KernelMap
  readonly counts: KernelMap
  /** Octets of the kernel's keys are compared with this: the generation that an endpoint has now. */
  readonly generationOf: (id: EndpointId) => number
  /** An established TCP connection without traffic for so long counts as gone. */
  readonly tcpIdleMs: number
  /** A flow of another protocol without a packet for so long counts as over. */
  readonly udpIdleMs: number
}

export class Peers {
  readonly #options: PeersOptions

  constructor(options: PeersOptions) {
    this.#options = options
  }

  scan(): PeerScan {
    const connections = this.#options.connections.reader()
    const others = this.#options.others.reader()
    return {
      next: (limit, visit) => {
        if (!connections.done) this.#nextConnections(connections, limit, visit)
        else if (!others.done) this.#nextFlows(others, limit, visit)
        return connections.done && others.done
      },
    }
  }

  /** Away with the counts of a generation that is gone. */
  forget(id: EndpointId, generation: Generation): void {
    this.#options.counts.delete(countKey(id, generation, COUNT_KERNEL))
    this.#options.counts.delete(countKey(id, generation, COUNT_FREED))
  }

  #nextConnections(reader: MapReader, limit: number, visit: VisitPeer): void {
    const count = reader.read(limit)
    const { keys, values } = reader
    const { generationOf, tcpIdleMs } = this.#options
    const oldest = this.#ago(tcpIdleMs)
    for (let i = 0; i < count; i++) {
      const key = i * KEY
      const id = endpointId(readNumber(keys, key))
      const current = generationOf(id) === readNumber(keys, key + 4)
      if (!current || readLong(values, i * VALUE) < oldest) {
        this.#clear(keys.subarray(key, key + KEY), current)
      } else if (values[i * VALUE + BEGAN_AT] === BEGAN_ENDPOINT) {
        visitPeer(keys, key, visit)
      }
    }
  }

  #nextFlows(reader: MapReader, limit: number, visit: VisitPeer): void {
    const count = reader.read(limit)
    const { keys, values } = reader
    const { generationOf, udpIdleMs } = this.#options
    const oldest = this.#ago(udpIdleMs)
    for (let i = 0; i < count; i++) {
      const [key, value] = [i * KEY, i * VALUE]
      const protocol = keys[key + PROTOCOL_AT]
      if (protocol !== UDP && protocol !== SCTP) continue
      if (values[value + BEGAN_AT] !== BEGAN_ENDPOINT || readLong(values, value) < oldest) continue
      const id = endpointId(readNumber(keys, key))
      if (id === NOBODY) continue
      if (generationOf(id) === readNumber(keys, key + 4)) visitPeer(keys, key, visit)
    }
  }

  /** The kernel's time so long ago, in nanoseconds. */
  #ago(milliseconds: number): number {
    return this.#options.bpf.now() * 1e9 - milliseconds * 1e6
  }

  #clear(key: Uint8Array, counted: boolean): void {
    const { connections, counts } = this.#options
    if (connections.delete(key) !== 0 || !counted) return
    const freed = countKey(readNumber(key, 0), readNumber(key, 4), COUNT_FREED)
    const before = counts.get(freed)
    counts.set(freed, encodeLong((before === undefined ? 0 : readLong(before, 0)) + 1))
  }
}

function visitPeer(keys: Uint8Array, key: number, visit: VisitPeer): void {
  const family: Family = keys[key + FAMILY_AT] === 4 ? 4 : 6
  visit(endpointId(readNumber(keys, key)), family, keys.subarray(key + PEER_AT, key + PEER_AT + 16))
}

function countKey(id: number, generation: number, side: number): Uint8Array {
  const numbers = new Uint32Array([id, generation, side])
  return new Uint8Array(numbers.buffer)
}
