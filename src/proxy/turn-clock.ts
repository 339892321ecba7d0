// The clock of the packet path: while sockets work through a turn, all of it happens at one time, so a query costs no
// look at the clock. A round of a turn takes well under a millisecond or two, and nothing here is more exact than that.

import type { Clock, Timer } from '../core/clock.ts'

export class TurnClock implements Clock {
  readonly #clock: Clock
  #held = false
  #now = 0
  #wall = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** From here on it is now, until the next `hold` or `release`. */
  hold(): void {
    this.#now = this.#clock.now()
    this.#wall = this.#clock.wall()
    this.#held = true
  }

  release(): void {
    this.#held = false
  }

  now(): number {
    return this.#held ? this.#now : this.#clock.now()
  }

  wall(): number {
    return this.#held ? this.#wall : this.#clock.wall()
  }

  after(ms: number, run: () => void): Timer {
    return this.#clock.after(ms, run)
  }

  every(ms: number, run: () => void): Timer {
    return this.#clock.every(ms, run)
  }

  soon(run: () => void): void {
    this.#clock.soon(run)
  }
}
