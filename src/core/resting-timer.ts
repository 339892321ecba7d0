// Repeats work while there is work, and rests while there is none, so that an idle daemon is not woken. `wake` reads one field when the
// timer already runs, so the packet path can call it for each query.

import type { Clock, Timer } from './clock.ts'

export class RestingTimer {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #run: () => boolean
  #timer: Timer | undefined
  #stopped = false

  /** `run` returns true if there is more to do. The timer rests until `wake`. */
  constructor(clock: Clock, everyMs: number, run: () => boolean) {
    this.#clock = clock
    this.#everyMs = everyMs
    this.#run = run
  }

  get isResting(): boolean {
    return this.#timer === undefined
  }

  /** Calls `run` every `everyMs` milliseconds until there is nothing more to do. */
  wake(): void {
    if (this.#timer !== undefined || this.#stopped) return
    this.#timer = this.#clock.every(this.#everyMs, () => {
      if (!this.#run()) this.#rest()
    })
  }

  /** Stops for good. Later calls of `wake` do nothing. */
  stop(): void {
    this.#stopped = true
    this.#rest()
  }

  #rest(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
