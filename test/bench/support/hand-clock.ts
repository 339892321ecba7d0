// The system's clock, but timers fire only on request. So the periodic work of a daemon happens exactly when a benchmark measures it. `skip`
// ends waiting times at once.

import { systemClock, type Clock, type Timer } from '../../../src/core/clock.ts'

export class HandClock implements Clock {
  #skipped = 0
  /** The milliseconds of each pending timer. */
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

  /** Fires every pending timer, and the immediate follow-up work, in turns. Returns the milliseconds of each turn. */
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
