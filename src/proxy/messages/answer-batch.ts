// Accepted answers of one turn, and the queries that failed in it, as the upstream hands them to the
// pipeline. Entries are valid during the call: a component that holds an answer longer copies its octets. The slot stays
// taken until it is released, so it's safe to keep.

import type { MessageView } from './message-view.ts'
import { DEFAULT_STRIDE, OctetStore } from './octet-store.ts'

/** Answers that one batch takes. */
export const ANSWERS_CAPACITY = 256

export class AnswerBatch {
  readonly store: OctetStore
  readonly slots: Uint32Array
  /** 1 where the answer came over TCP and so may be longer than a UDP client takes. */
  readonly overTcp: Uint8Array
  /** Index of the server that answered. */
  readonly servers: Uint16Array
  #count = 0

  constructor(capacity = ANSWERS_CAPACITY) {
    this.store = new OctetStore(capacity, DEFAULT_STRIDE)
    this.slots = new Uint32Array(capacity)
    this.overTcp = new Uint8Array(capacity)
    this.servers = new Uint16Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  get full(): boolean {
    return this.#count === this.store.capacity
  }

  octets(index: number): Uint8Array {
    return this.store.octets(index)
  }

  offset(index: number): number {
    return this.store.offsets[index]!
  }

  length(index: number): number {
    return this.store.lengths[index]!
  }

  /** The octets of an answer, put into a view. */
  view(index: number, into: MessageView): MessageView {
    return this.store.view(index, into)
  }

  /** Adds an answer of any length; the batch must not be full. `lasting`: its octets hold until `clear`. */
  add(slot: number, server: number, overTcp: boolean, message: MessageView, lasting = false): void {
    const { octets, offset, length } = message
    const index = this.#count++
    this.slots[index] = slot
    this.servers[index] = server
    this.overTcp[index] = overTcp ? 1 : 0
    if (lasting) this.store.refer(index, octets, offset, length)
    else this.store.keep(index, octets, offset, length)
  }

  clear(): void {
    this.store.clear(this.#count)
    this.#count = 0
  }
}

/** No server answered in time / no server could be reached (EDE 22 / 23, docs/spec/semantics 4). */
export const FAILED_TIMEOUT = 0
export const FAILED_SOCKET = 1

export class FailureBatch {
  readonly slots: Uint32Array
  /** FAILED_TIMEOUT or FAILED_SOCKET. */
  readonly reasons: Uint8Array
  #count = 0

  /** Takes as many as there can be queries in flight: a slot fails once. */
  constructor(capacity: number) {
    this.slots = new Uint32Array(capacity)
    this.reasons = new Uint8Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  add(slot: number, reason: number): void {
    this.slots[this.#count] = slot
    this.reasons[this.#count++] = reason
  }

  clear(): void {
    this.#count = 0
  }
}
