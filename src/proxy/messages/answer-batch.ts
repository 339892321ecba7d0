// The upstream gathers the accepted answers and the failed queries of one turn here, and Delivery gives them to the pipeline.
// An answer in a batch is valid only during the call. A component that needs it longer must copy the octets. The slot stays
// taken until it is released, so a component can keep the slot's number.

import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { DEFAULT_STRIDE, OctetStore } from './octet-store.ts'

/** The largest number of answers in one batch. */
export const ANSWERS_CAPACITY = 256

export class AnswerBatch extends OctetStore {
  readonly slots: Uint32Array
  /** 1 if the answer came over TCP: it can be longer than a UDP client accepts. */
  readonly overTcp: Uint8Array
  /** Index of the server that answered. */
  readonly servers: Uint16Array

  constructor(capacity = ANSWERS_CAPACITY) {
    super(capacity, DEFAULT_STRIDE)
    this.slots = new Uint32Array(capacity)
    this.overTcp = new Uint8Array(capacity)
    this.servers = new Uint16Array(capacity)
  }

  /** Adds an answer of any length. The batch must have room. `lasting`: the octets stay valid until `clear`, so they are not copied. */
  add(slot: number, server: number, overTcp: boolean, message: MessageView, lasting = false): void {
    const index = this.count++
    this.slots[index] = slot
    this.servers[index] = server
    this.overTcp[index] = overTcp ? 1 : 0
    if (lasting) this.refer(index, message)
    else this.keep(index, message)
  }
}

/** No server answered in time (EDE 22, docs/spec/semantics 4). */
export const FAILED_TIMEOUT = 0
/** No server could be reached (EDE 23, docs/spec/semantics 4). */
export const FAILED_SOCKET = 1

export class FailureBatch {
  readonly slots: Uint32Array
  /** FAILED_TIMEOUT or FAILED_SOCKET. */
  readonly reasons: Uint8Array
  count = 0

  /** `capacity` is the bound of queries in flight, because a slot can fail once. */
  constructor(capacity: number) {
    this.slots = new Uint32Array(capacity)
    this.reasons = new Uint8Array(capacity)
  }

  add(slot: number, reason: number): void {
    this.slots[this.count] = slot
    this.reasons[this.count++] = reason
  }

  clear(): void {
    this.count = 0
  }
}

export interface DeliveryOptions {
  readonly clock: Clock
  /** The bound of queries in flight. Each of them can fail once. */
  readonly capacity: number
  readonly onAnswers: (answers: AnswerBatch) => void
  readonly onFailures: (failures: FailureBatch) => void
}

/**
 * Delivery gathers the answers and failures of one turn. It delivers them when the turn's input has been read, or earlier when
 * a batch is full. Each batch leads to one commit. In each turn, Datagrams calls `hold`, then `deliver` any number of times, then
 * `release`.
 */
export class Delivery {
  readonly #options: DeliveryOptions
  readonly #answers = new AnswerBatch()
  #failures: FailureBatch
  /** Receives new failures while `#failures` is delivered. */
  #spare: FailureBatch
  #delivering = false
  #scheduled = false
  #held = false
  #lasting: Uint8Array | undefined
  readonly #run = (): void => {
    this.#scheduled = false
    this.deliver()
  }

  constructor(options: DeliveryOptions) {
    this.#options = options
    this.#failures = new FailureBatch(options.capacity)
    this.#spare = new FailureBatch(options.capacity)
  }

  answer(slot: number, server: number, overTcp: boolean, message: MessageView): void {
    invariant(!this.#delivering, 'no answer is received while answers are handled')
    if (this.#answers.full) this.deliver()
    this.#answers.add(slot, server, overTcp, message, message.octets === this.#lasting)
    this.#schedule()
  }

  /** `reason` is FAILED_TIMEOUT or FAILED_SOCKET. */
  failure(slot: number, reason: number): void {
    this.#failures.add(slot, reason)
    this.#schedule()
  }

  /** Begins a turn. Octets in `lasting` stay valid until the next `deliver`. */
  hold(lasting: Uint8Array): void {
    this.#held = true
    this.#lasting = lasting
  }

  /** Delivers, and ends the turn. */
  release(): void {
    this.#held = false
    this.#lasting = undefined
    this.deliver()
  }

  deliver(): void {
    if (this.#answers.count === 0 && this.#failures.count === 0) return
    this.#delivering = true
    try {
      if (this.#answers.count > 0) this.#options.onAnswers(this.#answers)
      if (this.#failures.count > 0) this.#deliverFailures()
    } finally {
      this.#answers.clear()
      this.#delivering = false
    }
  }

  #deliverFailures(): void {
    const failures = this.#failures
    this.#failures = this.#spare
    this.#spare = failures
    try {
      this.#options.onFailures(failures)
    } finally {
      failures.clear()
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#held) return
    this.#scheduled = true
    this.#options.clock.soon(this.#run)
  }
}
