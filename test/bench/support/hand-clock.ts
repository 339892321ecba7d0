// The system's clock, but timers fire only when told to: what a daemon does by itself now and then happens exactly
// when a benchmark wants to measure it. `skip` lets waiting times pass at once.

import { systemClock, type Clock, type Timer } from '../../../src/core/clock.ts'

export class HandClock implements Clock {
  #skipped = 0
  /** By the milliseconds that it was to wait. */
  readonly #pending = new Map<() => void, number>()

  now(): number {
    return systemClock.now() + this.#skipped
  }

  wall(): number {
    return systemClock.wall() + this.#skipped
  }

  after(ms: number, run: () => void): Timer {
    const pending = (): void => {
      this.#pending.delete(pending)
      run()
    }
    this.#pending.set(pending, ms)
    return { cancel: () => this.#pending.delete(pending) }
  }

  every(): Timer {
    return { cancel: () => undefined }
  }

  soon(run: () => void): void {
    systemClock.soon(run)
  }

  skip(ms: number): void {
    this.#skipped += ms
  }

  /** Fires every timer that waits now, and what these want to go on with at once, in turns; milliseconds of each turn. */
  async fire(): Promise<readonly number[]> {
    const turns: number[] = []
    let due = [...this.#pending.keys()]
    while (due.length > 0) {
      const began = performance.now()
      for (const run of due) run()
      turns.push(performance.now() - began)
      due = [...this.#pending].filter(([, ms]) => ms === 0).map(([run]) => run)
      if (due.length > 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return turns
  }
}
