// The system's clock, but timers fire only when told to: what a daemon does by itself now and then happens exactly
// when a benchmark wants to measure it. `skip` lets waiting times pass at once.

import { systemClock, type Clock, type Timer } from '../../../src/core/clock.ts'

export class HandClock implements Clock {
  #skipped = 0
  readonly #pending = new Set<() => void>()

  now(): number {
    return systemClock.now() + this.#skipped
  }

  wall(): number {
    return systemClock.wall() + this.#skipped
  }

  after(_: number, run: () => void): Timer {
    const pending = (): void => {
      this.#pending.delete(pending)
      run()
    }
    this.#pending.add(pending)
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

  /** Fires every timer that waits now. */
  fire(): void {
    for (const run of [...this.#pending]) run()
  }
}
