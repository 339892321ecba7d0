// How long the disk is left alone after it refused something: a second at first, twice as long each time, at most a
// minute.

import type { Clock } from '../core/clock.ts'

const FIRST_MS = 1000
const LONGEST_MS = 60_000

export class RetryPause {
  readonly #clock: Clock
  #next = FIRST_MS
  #until = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isOver(): boolean {
    return this.#clock.now() >= this.#until
  }

  /** Begins a pause; within one nothing changes. */
  failed(): void {
    if (!this.isOver) return
    this.#until = this.#clock.now() + this.#next
    this.#next = Math.min(LONGEST_MS, 2 * this.#next)
  }

  succeeded(): void {
    this.#until = -Infinity
    this.#next = FIRST_MS
  }
}
