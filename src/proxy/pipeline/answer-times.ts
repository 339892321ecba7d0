// AnswerTimes measures the time from the admission of a query to its answer, by how the query ended. The admission notes the time once per
// batch, and the settlement once per batch, so a query costs no reading of the clock.

import type { Clock } from '../../core/clock.ts'
import { Histogram } from '../../core/tables/histogram.ts'
import type { InFlightTable } from '../messages/in-flight.ts'

export interface AnswerTimesOptions {
  /** A clock that does not stand still during a turn, so that a time includes the commit of the turn. */
  readonly clock: Clock
  readonly inFlight: Pick<InFlightTable, 'admittedAt'>
}

export class AnswerTimes {
  /** The times in milliseconds, by the outcome of the answer. `failed`: no usable answer came from upstream. */
  readonly exact = new Histogram()
  readonly degraded = new Histogram()
  readonly heldOut = new Histogram()
  readonly failed = new Histogram()
  readonly #options: AnswerTimesOptions
  #now = 0

  constructor(options: AnswerTimesOptions) {
    this.#options = options
  }

  /** Reads the clock. Call it before the `add` of a batch. */
  look(): void {
    this.#now = this.#options.clock.now()
  }

  /** Adds the time of a slot's query to one of the histograms of this object. */
  add(to: Histogram, slot: number): void {
    to.add(this.#now - this.#options.inFlight.admittedAt[slot]!)
  }
}
