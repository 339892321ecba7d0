// Wait lets a take-over wait for a condition. It checks the condition on each `wake` and every LOOK_MS milliseconds, because some
// conditions change without a call of `wake`.

import type { Clock } from '../core/clock.ts'

const LOOK_MS = 5

export class Wait {
  readonly #clock: Clock
  #wake: () => void = () => undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Checks the condition now. */
  wake(): void {
    this.#wake()
  }

  /** Waits for `isSo` to return true, at most `ms` milliseconds. Returns true if it did. */
  async until(isSo: () => boolean, ms: number): Promise<boolean> {
    const clock = this.#clock
    const end = clock.now() + ms
    while (!isSo()) {
      if (clock.now() >= end) return false
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        clock.after(LOOK_MS, resolve)
      })
    }
    return true
  }
}
