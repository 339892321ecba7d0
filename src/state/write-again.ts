// When something that the disk refused is written again: every few seconds, until its owner says that the disk has it. Only
// one wait at a time, whatever was refused meanwhile.

import type { Clock, Timer } from '../core/clock.ts'

const AGAIN_MS = 5000

export class WriteAgain {
  readonly #clock: Clock
  readonly #write: () => void
  #timer: Timer | undefined

  /** `write` calls `later` when it is refused again. */
  constructor(clock: Clock, write: () => void) {
    this.#clock = clock
    this.#write = write
  }

  later(): void {
    this.#timer ??= this.#clock.after(AGAIN_MS, () => {
      this.#timer = undefined
      this.#write()
    })
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
