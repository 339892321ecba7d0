// The queries that were forwarded and not yet answered to the client. A slot is taken when a query is
// forwarded and freed by `release` when the pipeline has answered its client; between the two it belongs
// to one query, so a slot number is a safe handle. It keeps what the answer needs: the client, its id,
// the query's octets as they came, and the question's place in them.
// Writers: the upstream takes, the pipeline releases. Memory: 512-octet cells in one slab that is touched
// only as far as it was used (32 MiB of address space by default), longer queries aside within a budget.

import { invariant } from '../../core/invariant.ts'
import type { EndpointId, Generation } from '../../core/ids.ts'
import type { Family } from '../../core/ip.ts'
import type { QueryView } from '../../dns/query.ts'
import type { MessageBatch } from './batch.ts'
import { ClientColumns, copyClient } from './client-columns.ts'
import { ClientCounts } from './client-counts.ts'
import { copyOctets, copyOf } from './octet-store.ts'

/** Octets of a query that fit a cell: every query without unusual EDNS options. */
const CELL = 512
/** Octets of longer queries kept in all: 256 of the longest possible, or 16,384 of 1,024 octets. */
const LONG_QUERY_OCTETS_MAX = 16 * 1024 * 1024

const ID_OCTETS = 2
/** A sixteenth. */
const RESERVE_SHIFT = 4

const FREE = 0
const TAKEN = 1

/** `take` gives a slot or one of these. */
export const TABLE_FULL = -1
export const CLIENT_FULL = -2

export interface InFlightOptions {
  /** `limits.queries-in-flight`. */
  readonly capacity: number
  /** `limits.queries-in-flight-per-client`. */
  readonly perClient: number
}

export class InFlightTable extends ClientColumns {
  readonly capacity: number
  /** The client's own query id. */
  readonly clientIds: Uint16Array
  readonly endpoints: Uint32Array
  readonly generations: Uint32Array
  readonly qtypes: Uint16Array
  readonly qclasses: Uint16Array
  /** Octets from the start of the query to behind its question. */
  readonly questionEnds: Uint16Array
  /** What the client takes over UDP, in octets. */
  readonly udpSizes: Uint16Array
  readonly hasOpts: Uint8Array
  /** 1 where the query's OPT had the DO bit. */
  readonly dnssecOks: Uint8Array
  /** Hash of name, type and class; equal questions have equal hashes. */
  readonly questionHashes: Uint32Array
  readonly #lengths: Uint32Array
  readonly #cells: Uint8Array<ArrayBuffer>
  readonly #cellWords: Uint32Array
  readonly #long = new Map<number, Uint8Array>()
  #longOctets = 0
  readonly #clients: ClientCounts
  readonly #clientEntries: Int32Array
  readonly #perClient: number
  readonly #states: Uint8Array
  /** Freed slots, last freed on top, so that few cells are ever touched. */
  readonly #free: Uint32Array
  #freeCount = 0
  /** Slots from here on were never used. */
  #fresh = 0
  #count = 0

  constructor(options: InFlightOptions) {
    const { capacity, perClient } = options
    super(capacity)
    this.capacity = capacity
    this.#perClient = perClient
    this.clientIds = new Uint16Array(capacity)
    this.endpoints = new Uint32Array(capacity)
    this.generations = new Uint32Array(capacity)
    this.qtypes = new Uint16Array(capacity)
    this.qclasses = new Uint16Array(capacity)
    this.questionEnds = new Uint16Array(capacity)
    this.udpSizes = new Uint16Array(capacity)
    this.hasOpts = new Uint8Array(capacity)
    this.dnssecOks = new Uint8Array(capacity)
    this.questionHashes = new Uint32Array(capacity)
    this.#lengths = new Uint32Array(capacity)
    this.#cells = new Uint8Array(capacity * CELL)
    this.#cellWords = new Uint32Array(this.#cells.buffer)
    this.#clients = new ClientCounts(capacity)
    this.#clientEntries = new Int32Array(capacity)
    this.#states = new Uint8Array(capacity)
    this.#free = new Uint32Array(capacity)
  }

  /** Queries in flight. */
  get count(): number {
    return this.#count
  }

  /** Takes a slot for entry `index` of a batch, whose question is in `query`; TABLE_FULL or CLIENT_FULL when bounds forbid. */
  take(
    batch: MessageBatch,
    index: number,
    query: QueryView,
    endpoint: EndpointId,
    generation: Generation,
  ): number {
    const length = batch.length(index)
    if (this.#count === this.capacity) return TABLE_FULL
    if (length > CELL && this.#longOctets + length > LONG_QUERY_OCTETS_MAX) return TABLE_FULL
    const family: Family = batch.families[index] === 4 ? 4 : 6
    const share = this.#share
    const client = this.#clients.add(family, batch.addresses, index * 16, share)
    if (client < 0) return share < this.#perClient ? TABLE_FULL : CLIENT_FULL
    const slot = this.#freeCount > 0 ? this.#free[--this.#freeCount]! : this.#fresh++
    this.#count++
    this.#states[slot] = TAKEN
    this.#clientEntries[slot] = client
    copyClient(batch, index, this, slot)
    this.#takeQuestion(slot, query)
    this.#takeOctets(slot, batch, index, length)
    this.endpoints[slot] = endpoint
    this.generations[slot] = generation
    return slot
  }

  /** Whether the client of a row has as many in flight as it may. */
  isClientFull(clients: ClientColumns, row: number): boolean {
    const family: Family = clients.families[row] === 4 ? 4 : 6
    return this.#clients.countOf(family, clients.addresses, row * 16) >= this.#share
  }

  /**
   * What one client may have now: its bound, but of the last sixteenth of the table no more than what is still free.
   * So many clients that ask without end leave room for clients with few in flight [A32].
   */
  get #share(): number {
    const free = this.capacity - this.#count
    return free > this.capacity >> RESERVE_SHIFT ? this.#perClient : Math.min(this.#perClient, free)
  }

  #takeQuestion(slot: number, query: QueryView): void {
    this.clientIds[slot] = query.id
    this.qtypes[slot] = query.qtype
    this.qclasses[slot] = query.qclass
    this.questionEnds[slot] = query.questionEnd
    this.udpSizes[slot] = query.udpSize
    this.hasOpts[slot] = query.hasOpt ? 1 : 0
    this.dnssecOks[slot] = query.dnssecOk ? 1 : 0
    this.questionHashes[slot] = hashQuestion(query.nameHash, query.qtype, query.qclass)
  }

  #takeOctets(slot: number, batch: MessageBatch, index: number, length: number): void {
    const source = batch.octets(index)
    const offset = batch.offset(index)
    this.#lengths[slot] = length
    if (length > CELL) {
      this.#long.set(slot, copyOf(source, offset, length))
      this.#longOctets += length
    } else if (source === batch.store.slab && (offset & 3) === 0) {
      // A quarter of the loads and stores; the last word may bring octets that are of no message.
      const { words } = batch.store
      const from = offset >> 2
      const to = (slot * CELL) >> 2
      for (let i = 0; i < (length + 3) >> 2; i++) this.#cellWords[to + i] = words[from + i]!
    } else {
      copyOctets(source, offset, this.#cells, slot * CELL, length)
    }
  }

  isTaken(slot: number): boolean {
    return this.#states[slot] === TAKEN
  }

  /** The array that holds the query as the client sent it, `length(slot)` octets from `offset(slot)`. */
  octets(slot: number): Uint8Array {
    return this.#lengths[slot]! <= CELL ? this.#cells : (this.#long.get(slot) ?? this.#cells)
  }

  offset(slot: number): number {
    return this.#lengths[slot]! <= CELL ? slot * CELL : 0
  }

  length(slot: number): number {
    return this.#lengths[slot]!
  }

  /** A number for the slot's client address, equal for queries in flight of the same address only. */
  clientOf(slot: number): number {
    return this.#clientEntries[slot]!
  }

  /** `hashOctets` of the slot's name in lower case. */
  nameHash(slot: number): number {
    // hashQuestion the other way round.
    return hashQuestion(this.questionHashes[slot]!, this.qtypes[slot]!, this.qclasses[slot]!)
  }

  /** Whether two queries are the same octets behind the id. */
  isSameMessage(a: number, b: number): boolean {
    const length = this.#lengths[a]!
    if (length !== this.#lengths[b]) return false
    const x = this.octets(a)
    const y = this.octets(b)
    const xAt = this.offset(a)
    const yAt = this.offset(b)
    for (let i = ID_OCTETS; i < length; i++) if (x[xAt + i] !== y[yAt + i]) return false
    return true
  }

  /** Whether two queries asked the same server. */
  isSameAsked(a: number, b: number): boolean {
    if (this.askedPorts[a] !== this.askedPorts[b] || this.families[a] !== this.families[b]) {
      return false
    }
    for (let i = 0; i < 16; i++) {
      if (this.askedAddresses[a * 16 + i] !== this.askedAddresses[b * 16 + i]) return false
    }
    return true
  }

  /** Frees a slot. It must be taken. */
  release(slot: number): void {
    invariant(this.isTaken(slot), 'a slot is released once', slot)
    const length = this.#lengths[slot]!
    if (length > CELL) {
      this.#long.delete(slot)
      this.#longOctets -= length
    }
    this.#clients.remove(this.#clientEntries[slot]!)
    this.#states[slot] = FREE
    this.#free[this.#freeCount++] = slot
    this.#count--
  }
}

/** One number for a question, from the hash of its lower-case name; and the hash of the name from that number. */
export function hashQuestion(nameHash: number, qtype: number, qclass: number): number {
  return (nameHash ^ Math.imul(((qclass << 16) | qtype) >>> 0, 0x9e3779b1)) >>> 0
}
