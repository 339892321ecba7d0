// A clock that advances only when a test calls `advance`. Timers run in the order in which they are due. `soon` runs at the next advance.

import type { Clock, Timer } from '../../src/core/clock.ts'

interface Pending {
  at: number
  readonly every: number | undefined
  readonly run: () => void
}

export class FakeClock implements Clock {
  /** The sum of the changes of the wall clock. */
  offsetMs = 0
  #now: number
  readonly #wallAtZero: number
  readonly #pending = new Set<Pending>()

  constructor(now = 1_000_000, wallAtZero = 1_700_000_000_000) {
    this.#now = now
    this.#wallAtZero = wallAtZero
  }

  now(): number {
    return this.#now
  }

  wall(): number {
    return this.#wallAtZero + this.#now + this.offsetMs
  }

  after(ms: number, run: () => void): Timer {
    return this.#start({ at: this.#now + ms, every: undefined, run })
  }

  every(ms: number, run: () => void): Timer {
    return this.#start({ at: this.#now + ms, every: ms, run })
  }

  soon(run: () => void): void {
    this.#start({ at: this.#now, every: undefined, run })
  }

  /** Advances the time. Each timer that becomes due runs at its own moment. */
  advance(ms: number): void {
    const until = this.#now + ms
    for (let next = this.#nextDue(until); next !== undefined; next = this.#nextDue(until)) {
      this.#now = Math.max(this.#now, next.at)
      if (next.every === undefined) this.#pending.delete(next)
      else next.at += next.every
      next.run()
    }
    this.#now = until
  }

  #nextDue(until: number): Pending | undefined {
    let first: Pending | undefined
    for (const each of this.#pending) {
      if (each.at <= until && (first === undefined || each.at < first.at)) first = each
    }
    return first
  }

  #start(pending: Pending): Timer {
    this.#pending.add(pending)
    return { cancel: () => this.#pending.delete(pending) }
  }
}
