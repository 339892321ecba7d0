// InFlightTable holds the queries that were forwarded and whose clients have no answer yet. The upstream calls `take` when it
// forwards a query, and the pipeline calls `release` when it has answered the client. Between these calls the slot belongs to
// this query alone, so a component can keep the slot's number. A slot stores what the answer needs: the client, the client's id,
// the query's octets as they arrived, and the position of the question.
// Memory: one cell of 512 octets per slot in one large array (32 MiB of address space by default; only used pages take memory).
// Longer queries are stored one by one, within a budget.

import { invariant } from '../../core/invariant.ts'
import type { EndpointId, Generation } from '../../core/ids.ts'
import type { Family } from '../../core/ip.ts'
import { MessageView } from '../../dns/message-view.ts'
import type { QueryView } from '../../dns/query.ts'
import type { MessageBatch } from './batch.ts'
import { ClientColumns, copyClient } from './client-columns.ts'
import { ClientCounts } from './client-counts.ts'
import { copyOctets } from './octet-store.ts'

/** Octets of a cell. Only queries with unusual EDNS options are longer. */
const CELL = 512
/** The budget of all longer queries together, in octets: 256 of the longest possible, or 16,384 of 1,024 octets. */
const LONG_QUERY_OCTETS_MAX = 16 * 1024 * 1024

const ID_OCTETS = 2
/** A sixteenth of the table is reserved for clients with few queries in flight. */
const RESERVE_SHIFT = 4

const FREE = 0
const TAKEN = 1

/** Result of `take`: the table is full, or so full that the client can have no further slot, or the budget of longer queries is used up. */
export const TABLE_FULL = -1
/** Result of `take`: the client has reached its bound. */
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
  /** Octets from the start of the query to the end of its question. */
  readonly questionEnds: Uint16Array
  /** The longest UDP message that the client accepts, in octets. */
  readonly udpSizes: Uint16Array
  readonly hasOpts: Uint8Array
  /** 1 if the query's OPT record had the DO bit. */
  readonly dnssecOks: Uint8Array
  /** Hash of name, type and class; equal questions have equal hashes. */
  readonly questionHashes: Uint32Array
  /** The labels that the name had when the query was admitted (AskedLabels). */
  readonly labels: Uint32Array
  readonly labelEpochs: Uint32Array
  /** When the query was admitted, in the clock's milliseconds. */
  readonly admittedAt: Float64Array
  readonly #lengths: Uint32Array
  readonly #cells: Uint8Array<ArrayBuffer>
  readonly #cellWords: Uint32Array
  readonly #long = new Map<number, Uint8Array>()
  /** The query for which `take` was called. */
  readonly #message = new MessageView()
  #longOctets = 0
  readonly #clients: ClientCounts
  readonly #clientEntries: Int32Array
  readonly #perClient: number
  readonly #states: Uint8Array
  /** A stack of freed slots. Reusing the last freed slot keeps the number of used cells small. */
  readonly #free: Uint32Array
  #freeCount = 0
  /** Slots from this number on were never used. */
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
    this.labels = new Uint32Array(capacity)
    this.labelEpochs = new Uint32Array(capacity)
    this.admittedAt = new Float64Array(capacity)
    this.#lengths = new Uint32Array(capacity)
    this.#cells = new Uint8Array(capacity * CELL)
    this.#cellWords = new Uint32Array(this.#cells.buffer)
    this.#clients = new ClientCounts(capacity)
    this.#clientEntries = new Int32Array(capacity)
    this.#states = new Uint8Array(capacity)
    this.#free = new Uint32Array(capacity)
  }

  /** The number of queries in flight. */
  get count(): number {
    return this.#count
  }

  /** Takes a slot for message `index` of a batch. `query` has read it. Returns the slot, or TABLE_FULL or CLIENT_FULL at a bound. */
  take(
    batch: MessageBatch,
    index: number,
    query: QueryView,
    endpoint: EndpointId,
    generation: Generation,
  ): number {
    const message = batch.view(index, this.#message)
    const { length } = message
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
    this.#takeOctets(slot, batch, message)
    this.endpoints[slot] = endpoint
    this.generations[slot] = generation
    this.labels[slot] = batch.labels[index]!
    this.labelEpochs[slot] = batch.labelEpochs[index]!
    this.admittedAt[slot] = batch.admittedAt
    return slot
  }

  /** Returns true if the client of a row has reached its bound of queries in flight. */
  isClientFull(clients: ClientColumns, row: number): boolean {
    const family: Family = clients.families[row] === 4 ? 4 : 6
    return this.#clients.countOf(family, clients.addresses, row * 16) >= this.#share
  }

  /**
   * The bound of one client now: `perClient`. While only a sixteenth of the slots or fewer are free, the bound is at most the
   * number of free slots. So even many clients that ask without end leave room for clients with few queries in flight [A32].
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

  #takeOctets(slot: number, batch: MessageBatch, message: MessageView): void {
    const { octets, offset, length } = message
    this.#lengths[slot] = length
    if (length > CELL) {
      this.#long.set(slot, message.copy())
      this.#longOctets += length
    } else if (octets === batch.store.slab && (offset & 3) === 0) {
      // Copying words needs a quarter of the loads and stores. The last word can contain octets after the message.
      const { words } = batch.store
      const from = offset >> 2
      const to = (slot * CELL) >> 2
      for (let i = 0; i < (length + 3) >> 2; i++) this.#cellWords[to + i] = words[from + i]!
    } else {
      copyOctets(octets, offset, this.#cells, slot * CELL, length)
    }
  }

  isTaken(slot: number): boolean {
    return this.#states[slot] === TAKEN
  }

  /** Returns the array that contains the query as the client sent it: `length(slot)` octets at `offset(slot)`. */
  octets(slot: number): Uint8Array {
    return this.#lengths[slot]! <= CELL ? this.#cells : (this.#long.get(slot) ?? this.#cells)
  }

  offset(slot: number): number {
    return this.#lengths[slot]! <= CELL ? slot * CELL : 0
  }

  length(slot: number): number {
    return this.#lengths[slot]!
  }

  /** Points the view `into` at the query as the client sent it, and returns the view. */
  view(slot: number, into: MessageView): MessageView {
    return into.set(this.octets(slot), this.offset(slot), this.#lengths[slot]!)
  }

  /** Returns a number for the slot's client address. Two queries in flight have the same number only if they have the same address. */
  clientOf(slot: number): number {
    return this.#clientEntries[slot]!
  }

  /** Returns `hashOctets` of the slot's name in lower case. */
  nameHash(slot: number): number {
    // A second call of hashQuestion undoes the first, because XOR is its own inverse.
    return hashQuestion(this.questionHashes[slot]!, this.qtypes[slot]!, this.qclasses[slot]!)
  }

  /** Returns true if two queries have the same octets after the id. */
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

  /** Returns true if the clients of two queries asked the same server. */
  isSameAsked(a: number, b: number): boolean {
    if (this.askedPorts[a] !== this.askedPorts[b] || this.families[a] !== this.families[b]) {
      return false
    }
    for (let i = 0; i < 16; i++) {
      if (this.askedAddresses[a * 16 + i] !== this.askedAddresses[b * 16 + i]) return false
    }
    return true
  }

  /** Frees a slot. The slot must be taken. */
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

/** Returns the hash of a question from the hash of its lower-case name. With the hash of the question, returns the name's hash. */
export function hashQuestion(nameHash: number, qtype: number, qclass: number): number {
  return (nameHash ^ Math.imul(((qclass << 16) | qtype) >>> 0, 0x9e3779b1)) >>> 0
}
