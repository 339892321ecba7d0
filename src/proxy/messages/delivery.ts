// Gathers what the servers answered, and what failed, in one turn of the event loop and hands it to the
// pipeline when the turn's input has been read, or earlier when a batch is full: one batch, one commit. Sockets
// that work in turns say when that is.

import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { AnswerBatch, FailureBatch } from './answer-batch.ts'
import type { MessageView } from './message-view.ts'
import type { TurnFollower } from '../sockets/datagrams.ts'

export interface DeliveryOptions {
  readonly clock: Clock
  /** Most queries in flight, each of which can fail once. */
  readonly capacity: number
  readonly onAnswers: (answers: AnswerBatch) => void
  readonly onFailures: (failures: FailureBatch) => void
}

export class Delivery implements TurnFollower {
  readonly #options: DeliveryOptions
  readonly #answers = new AnswerBatch()
  #failures: FailureBatch
  /** Takes what fails while the other is handed over. */
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

  hold(lasting: Uint8Array): void {
    this.#held = true
    this.#lasting = lasting
  }

  release(): void {
    this.#held = false
    this.#lasting = undefined
    this.deliver()
  }

  deliver(): void {
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
