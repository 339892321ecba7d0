// Peers makes passes over the tables of connections, in slices: first established TCP (ng_conn), then UDP, SCTP and TCP that is
// not established (ng_conn_new). A pass reports the peers to which an endpoint has open connections. It removes entries that were
// idle too long, and entries of an endpoint or generation that is gone. It reports only connections that the endpoint began,
// because only those depend on a learned address. A connection that was pushed out of its endpoint's share (share.h) is no longer
// reported.
//
// The programs count entries per (endpoint, generation) and in all. This file counts what it removes in entries that only it
// writes, so no count has two writers. A count can become wrong if a process is killed between removing and counting, or if a
// version without these counts ran. The next pass then corrects the count of all entries.

import { endpointId, type EndpointId, type Generation } from '../../../core/ids.ts'
import type { Family } from '../../../core/ip.ts'
import { SCTP, UDP } from '../../../core/protocol.ts'
import type { Bpf } from '../../../native/native.ts'
import type { PeerScan } from '../../abilities.ts'
import type { KernelMap, MapReader } from './kernel-map.ts'
import { encodeLong, MAP_SHAPES, readLong, readNumber } from './layout.ts'

const KEY = MAP_SHAPES.ng_conn.key
const VALUE = MAP_SHAPES.ng_conn.value
const PROTOCOL_AT = 8
const FAMILY_AT = 9
const PEER_AT = 32
const BEGAN_AT = 8
const STATE_AT = 9
const BEGAN_ENDPOINT = 1
const BEGAN_NEIGHBOUR = 3
const STATE_OPEN = 2

/** A value of ng_conn_new also has the slot, and the endpoint in whose share it is counted. */
const FLOW = MAP_SHAPES.ng_conn_new.value
const SLOT_AT = 16
const OWNER_AT = 20

/** How long a connection can still be answered, and how long an address counts as on the link. conn.h has the same times. */
const REPLY_IDLE_MS = 180_000
const NEIGHBOUR_MS = 3_600_000

/** The endpoint of tuples that are remembered without an owner. */
const NOBODY = 0
/** The owner of the counts of all entries. */
const ALL = '0 0 '

type VisitPeer = (endpoint: EndpointId, family: Family, peer: Uint8Array) => void

/** Sides of ng_conn_count: which table, and whether the kernel or this process counts. */
const CONNECTIONS = 0
const FLOWS = 2
const COUNT_KERNEL = 0
const COUNT_FREED = 1
type Table = typeof CONNECTIONS | typeof FLOWS

/** Entries change while a pass counts them. So a count is wrong only if it differs by more than this fraction and COUNT_SLACK. */
const COUNT_TOLERANCE = 8
const COUNT_SLACK = 256

export interface PeersOptions {
  readonly bpf: Bpf
  readonly connections: KernelMap
  /** Half-open and ending TCP, UDP, SCTP, echoes, and tuples without an endpoint. */
  readonly others: KernelMap
  readonly slots: KernelMap
  readonly turns: KernelMap
  readonly counts: KernelMap
  /** Returns the generation that an endpoint has now. Entries of another generation are removed. */
  readonly generationOf: (id: EndpointId) => number
  /** An established TCP connection without traffic for this time is removed. */
  readonly tcpIdleMs: number
  /** A connection of another protocol without a packet for this time is removed. */
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
    const left = { [CONNECTIONS]: 0, [FLOWS]: 0 }
    return {
      next: (limit, visit) => {
        if (!connections.done) {
          left[CONNECTIONS] += this.#nextConnections(connections, limit, visit)
          if (connections.done) this.#correct(CONNECTIONS, left[CONNECTIONS])
        } else if (!others.done) {
          left[FLOWS] += this.#nextFlows(others, limit, visit)
          if (others.done) this.#correct(FLOWS, left[FLOWS])
        }
        return connections.done && others.done
      },
    }
  }

  /** How many entries the fuller of the two tables has, and the most that one endpoint has in one table. */
  use(): { readonly all: number; readonly most: number } {
    const used = new Map<string, number>()
    this.#options.counts.forEach((keys, key, values, value) => {
      const side = readNumber(keys, key + 8)
      const owner = `${readNumber(keys, key)} ${readNumber(keys, key + 4)} ${side & FLOWS}`
      const more = signed(values, value) * ((side & 1) === COUNT_FREED ? -1 : 1)
      used.set(owner, (used.get(owner) ?? 0) + more)
    })
    let [all, most] = [0, 0]
    for (const [owner, count] of used) {
      if (owner.startsWith(ALL)) all = Math.max(all, count)
      else most = Math.max(most, count)
    }
    return { all, most }
  }

  /** Removes the counts of a generation that is gone. */
  forget(id: EndpointId, generation: Generation): void {
    const { counts, turns } = this.#options
    for (const table of [CONNECTIONS, FLOWS] as const) {
      counts.delete(countKey(id, generation, table + COUNT_KERNEL))
      counts.delete(countKey(id, generation, table + COUNT_FREED))
    }
    turns.delete(countKey(id, generation, 0).subarray(0, MAP_SHAPES.ng_flow_turn.key))
  }

  /** Visits the next connections. Returns how many of them stay. */
  #nextConnections(reader: MapReader, limit: number, visit: VisitPeer): number {
    const count = reader.read(limit)
    const { keys, values } = reader
    const { generationOf, tcpIdleMs, connections } = this.#options
    const oldest = this.#ago(tcpIdleMs)
    let left = count
    for (let i = 0; i < count; i++) {
      const key = i * KEY
      const id = endpointId(readNumber(keys, key))
      const isCurrent = generationOf(id) === readNumber(keys, key + 4)
      if (!isCurrent || readLong(values, i * VALUE) < oldest) {
        left--
        if (connections.delete(keys.subarray(key, key + KEY)) !== 0) continue
        this.#free(CONNECTIONS, keys, key, isCurrent)
      } else if (values[i * VALUE + BEGAN_AT] === BEGAN_ENDPOINT) {
        visitPeer(keys, key, visit)
      }
    }
    return left
  }

  #nextFlows(reader: MapReader, limit: number, visit: VisitPeer): number {
    const count = reader.read(limit)
    const { keys, values } = reader
    const { generationOf, udpIdleMs } = this.#options
    const ago = this.#oldest()
    const oldest = this.#ago(udpIdleMs)
    let left = count
    for (let i = 0; i < count; i++) {
      const [key, value] = [i * KEY, i * FLOW]
      const id = endpointId(readNumber(keys, key))
      const isCurrent = generationOf(id) === readNumber(keys, key + 4)
      const began = values[value + BEGAN_AT]
      const seen = readLong(values, value)
      if ((id !== NOBODY && !isCurrent) || seen < ago(began, values[value + STATE_AT])) {
        left--
        this.#clearFlow(keys, key, values, value)
        continue
      }
      const protocol = keys[key + PROTOCOL_AT]
      if (protocol !== UDP && protocol !== SCTP) continue
      if (began === BEGAN_ENDPOINT && id !== NOBODY && seen >= oldest) visitPeer(keys, key, visit)
    }
    return left
  }

  /** Returns, by the side that began a connection and by its state, the time at which it must have been seen to stay. */
  #oldest(): (began: number | undefined, state: number | undefined) => number {
    const { tcpIdleMs, udpIdleMs } = this.#options
    const [open, neighbour] = [this.#ago(tcpIdleMs), this.#ago(NEIGHBOUR_MS)]
    const other = this.#ago(Math.max(udpIdleMs, REPLY_IDLE_MS))
    return (began, state) => {
      if (began === BEGAN_NEIGHBOUR) return neighbour
      return state === STATE_OPEN ? open : other
    }
  }

  /** The kernel's time `milliseconds` ago, in nanoseconds. */
  #ago(milliseconds: number): number {
    return this.#options.bpf.now() * 1e9 - milliseconds * 1e6
  }

  #clearFlow(keys: Uint8Array, key: number, values: Uint8Array, value: number): void {
    const { others, slots, generationOf } = this.#options
    if (others.delete(keys.subarray(key, key + KEY)) !== 0) return
    const [id, generation] = [
      readNumber(values, value + OWNER_AT),
      readNumber(values, value + OWNER_AT + 4),
    ]
    slots.delete(countKey(id, generation, readNumber(values, value + SLOT_AT)))
    const isCurrent = id === NOBODY || generationOf(endpointId(id)) === generation
    this.#free(FLOWS, values, value + OWNER_AT, isCurrent)
  }

  /**
   * Counts an entry that was removed. `owner` is the offset of endpoint and generation. A generation that has ended has no count.
   */
  #free(table: Table, octets: Uint8Array, owner: number, isCurrent: boolean): void {
    const [id, generation] = [readNumber(octets, owner), readNumber(octets, owner + 4)]
    if (isCurrent) this.#add(countKey(id, generation, table + COUNT_FREED), 1)
    this.#add(countKey(0, 0, table + COUNT_FREED), 1)
  }

  #add(key: Uint8Array, more: number): void {
    this.#options.counts.set(key, encodeLong(this.#read(key) + more))
  }

  #read(key: Uint8Array): number {
    const octets = this.#options.counts.get(key)
    return octets === undefined ? 0 : signed(octets, 0)
  }

  /** Corrects the count after a pass that found this many entries. */
  #correct(table: Table, found: number): void {
    const freed = countKey(0, 0, table + COUNT_FREED)
    const counted = this.#read(countKey(0, 0, table + COUNT_KERNEL)) - this.#read(freed)
    const over = counted - found
    if (Math.abs(over) > found / COUNT_TOLERANCE + COUNT_SLACK) this.#add(freed, over)
  }
}

/** A count of freed entries can be negative if some entries were never counted. */
function signed(octets: Uint8Array, at: number): number {
  return Number(BigInt.asIntN(64, new BigUint64Array(octets.slice(at, at + 8).buffer)[0] ?? 0n))
}

function visitPeer(keys: Uint8Array, key: number, visit: VisitPeer): void {
  const family: Family = keys[key + FAMILY_AT] === 4 ? 4 : 6
  visit(endpointId(readNumber(keys, key)), family, keys.subarray(key + PEER_AT, key + PEER_AT + 16))
}

function countKey(id: number, generation: number, side: number): Uint8Array {
  const numbers = new Uint32Array([id, generation, side])
  return new Uint8Array(numbers.buffer)
}
