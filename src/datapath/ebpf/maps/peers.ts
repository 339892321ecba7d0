// One pass over established TCP connections (ng_conn) in slices, then over flows of UDP and SCTP and everything unsettled (ng_conn_new). The
// pass reports the peers to which an endpoint has open connections, and removes what has been idle for too long or belongs to an endpoint or
// generation that is gone. It reports only connections that the endpoint began, because those depend on a known address. A flow that other
// flows of its endpoint pushed out of the share (share.h) counts as over.
//
// The programs count entries per (endpoint, generation) and in all. What this file removes is counted in entries that only this file
// writes, so that no count has two writers. Where a process was killed between the two, or a version without these counts ran, the next
// pass corrects the count of all.

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

/** ng_conn_new has more: the flow's slot, and whose share it is in. */
const FLOW = MAP_SHAPES.ng_conn_new.value
const SLOT_AT = 16
const OWNER_AT = 20

/** For so long a flow may still be answered, and an address counts as on the link; conn.h has the same. */
const REPLY_IDLE_MS = 180_000
const NEIGHBOUR_MS = 3_600_000

/** Owner of tuples that are remembered for no endpoint. */
const NOBODY = 0
/** Owner of the counts of all. */
const ALL = '0 0 '

type VisitPeer = (endpoint: EndpointId, family: Family, peer: Uint8Array) => void

/** Sides of ng_conn_count: table and who counts. */
const CONNECTIONS = 0
const FLOWS = 2
const COUNT_KERNEL = 0
const COUNT_FREED = 1
type Table = typeof CONNECTIONS | typeof FLOWS

/** Entries come and go while they are counted: a count is wrong only by more than this part of it. */
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

  /** Entries in the fuller of the two tables, and the most that one endpoint has in one. */
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

  /** How many of them there still are. */
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

  /** Until when a flow must have been seen to be kept, by who began it and its state. */
  #oldest(): (began: number | undefined, state: number | undefined) => number {
    const { tcpIdleMs, udpIdleMs } = this.#options
    const [open, neighbour] = [this.#ago(tcpIdleMs), this.#ago(NEIGHBOUR_MS)]
    const other = this.#ago(Math.max(udpIdleMs, REPLY_IDLE_MS))
    return (began, state) => {
      if (began === BEGAN_NEIGHBOUR) return neighbour
      return state === STATE_OPEN ? open : other
    }
  }

  /** The kernel's time so long ago, in nanoseconds. */
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

  /** Counts an entry that was cleared; `owner`: endpoint and generation. What is gone has no count of its own. */
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

  /** After a pass that found so many entries. */
  #correct(table: Table, found: number): void {
    const freed = countKey(0, 0, table + COUNT_FREED)
    const counted = this.#read(countKey(0, 0, table + COUNT_KERNEL)) - this.#read(freed)
    const over = counted - found
    if (Math.abs(over) > found / COUNT_TOLERANCE + COUNT_SLACK) this.#add(freed, over)
  }
}

/** What was freed can be less than nothing, where entries were not counted. */
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
