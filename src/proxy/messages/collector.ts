// Gathers what all listeners receive in one turn of the event loop into one batch and hands it over when
// the turn's input has been read, or earlier when the batch is full. One batch a turn means one commit
// a turn. The consumer must be done with the batch when its call returns.

import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { MessageBatch, type MessageBatchOptions } from './batch.ts'

export interface BatchCollectorOptions {
  readonly clock: Clock
  readonly onBatch: (batch: MessageBatch) => void
  readonly batch?: MessageBatchOptions
}

export class BatchCollector {
  readonly counters = {
    /** Batches handed over, and the messages in them. */
    batches: 0,
    messages: 0,
  }
  readonly #clock: Clock
  readonly #onBatch: (batch: MessageBatch) => void
  /** Filled by the caller of `room`, or in place by sockets that then flush. */
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

  /** The batch with room for one more message; hands a full one over first. */
  room(): MessageBatch {
    invariant(!this.#flushing, 'no message is received while a batch is handled')
    if (this.batch.full) this.flush()
    if (!this.#scheduled) {
      this.#scheduled = true
      this.#clock.soon(this.#runFlush)
    }
    return this.batch
  }

  /** Hands over what there is now. */
  flush(): void {
    if (this.batch.count === 0) return
    this.counters.batches++
    this.counters.messages += this.batch.count
    this.#flushing = true
    try {
      this.#onBatch(this.batch)
    } finally {
      this.#flushing = false
      this.batch.clear()
    }
  }
}
