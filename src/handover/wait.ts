// Waits in a take-over: for something that is looked at whenever there is news, and every few milliseconds besides, as some of it
// comes without any.

import type { Clock } from '../core/clock.ts'

const LOOK_MS = 5

export class Wait {
  readonly #clock: Clock
  #wake: () => void = () => undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** There is news. */
  wake(): void {
    this.#wake()
  }

  /** Until it is so, for `ms` at most; whether it is. */
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
