// MessageBatch holds messages of clients, each with its client. BatchCollector gathers them from the listeners. The pipeline reads
// a batch in one synchronous call. Then the batch is cleared and reused, so no component can keep a reference to a message in it.
// Sockets for UDP and for TCP fill the same batch. Cost: one large array and a few typed arrays, allocated once.

import type { Clock } from '../../core/clock.ts'
import type { Family } from '../../core/ip.ts'
import { invariant } from '../../core/invariant.ts'
import { ClientColumns, OVER_TCP } from './client-columns.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { DEFAULT_STRIDE, OctetStore } from './octet-store.ts'

/** The largest number of messages in one batch. */
export const BATCH_CAPACITY = 256

export interface MessageBatchOptions {
  readonly capacity?: number
  /** Octets of one cell. A longer UDP message is cut and marked. A longer TCP message is copied to an array of its own. */
  readonly stride?: number
}

export class MessageBatch extends ClientColumns {
  readonly store: OctetStore
  /** 1 if a UDP message was longer than a cell, and was cut. Its answer is FORMERR (docs/spec/semantics 6). */
  readonly oversized: Uint8Array
  /** The labels of the query's name. The admission writes them (AskedLabels). */
  readonly labels: Uint32Array
  readonly labelEpochs: Uint32Array
  /** When the queries were admitted, in the clock's milliseconds. The admission writes it. */
  admittedAt = 0

  constructor(options: MessageBatchOptions = {}) {
    const capacity = options.capacity ?? BATCH_CAPACITY
    super(capacity)
    this.store = new OctetStore(capacity, options.stride ?? DEFAULT_STRIDE)
    this.oversized = new Uint8Array(capacity)
    this.labels = new Uint32Array(capacity)
    this.labelEpochs = new Uint32Array(capacity)
  }

  get count(): number {
    return this.store.count
  }

  get full(): boolean {
    return this.store.full
  }

  /** Points the view `into` at a message, and returns the view. */
  view(index: number, into: MessageView): MessageView {
    return this.store.view(index, into)
  }

  /** Adds a message that came over TCP, without its length octets. The batch must have room. */
  addTcp(
    channel: number,
    family: Family,
    peer: Uint8Array,
    port: number,
    message: MessageView,
  ): void {
    const index = this.store.count++
    this.transports[index] = OVER_TCP
    this.channels[index] = channel
    this.families[index] = family
    this.ports[index] = port
    this.interfaces[index] = 0
    this.askedPorts[index] = 0
    for (let i = 0; i < 16; i++) {
      this.addresses[index * 16 + i] = peer[i]!
      this.askedAddresses[index * 16 + i] = 0
    }
    this.oversized[index] = 0
    this.store.keep(index, message)
  }

  /** Adds the next `count` messages. Call it after all columns, octets and lengths of these messages are filled. */
  extend(count: number): void {
    const { store } = this
    invariant(store.count + count <= store.capacity, 'a batch has room for what was received')
    store.count += count
  }

  clear(): void {
    this.store.clear()
  }
}

export interface BatchCollectorOptions {
  readonly clock: Clock
  readonly onBatch: (batch: MessageBatch) => void
  readonly batch?: MessageBatchOptions
}

/**
 * BatchCollector gathers the messages that all listeners receive in one turn. It hands its batch over when the turn's input has
 * been read, or earlier when the batch is full. One batch per turn means one commit per turn. After its call has returned, the
 * receiver must not use the batch.
 */
export class BatchCollector {
  readonly #clock: Clock
  readonly #onBatch: (batch: MessageBatch) => void
  /** The caller of `room` fills it. Datagrams fills it in place, and then calls `flush`. */
  readonly batch: MessageBatch
  readonly #runFlush = (): void => {
    this.#scheduled = false
    this.flush()
  }
  #scheduled = false
  #flushing = false

  constructor(options: BatchCollectorOptions) {
    this.#clock = options.clock
    this.#onBatch = options.onBatch
    this.batch = new MessageBatch(options.batch)
  }

  /** Returns the batch with room for one more message. If the batch is full, `room` hands it over first. */
  room(): MessageBatch {
    invariant(!this.#flushing, 'no message is received while a batch is handled')
    if (this.batch.full) this.flush()
    if (!this.#scheduled) {
      this.#scheduled = true
      this.#clock.soon(this.#runFlush)
    }
    return this.batch
  }

  /** Hands over the batch if it has messages. */
  flush(): void {
    if (this.batch.count === 0) return
    this.#flushing = true
    try {
      this.#onBatch(this.batch)
    } finally {
      this.#flushing = false
      this.batch.clear()
    }
  }
}
