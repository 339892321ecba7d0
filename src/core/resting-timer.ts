// Repeats work while there is some and rests while there is none, so that an idle daemon is not woken. Waking costs one look at a field,
// so the packet path may do it for each query.

import type { Clock, Timer } from './clock.ts'

export class RestingTimer {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #run: () => boolean
  #timer: Timer | undefined
  #stopped = false

  /** `run` says whether there will be more to do. It begins resting. */
  constructor(clock: Clock, everyMs: number, run: () => boolean) {
    this.#clock = clock
    this.#everyMs = everyMs
    this.#run = run
  }

  get isResting(): boolean {
    return this.#timer === undefined
  }

  /** There is something to do `everyMs` from now. */
  wake(): void {
    if (this.#timer !== undefined || this.#stopped) return
    this.#timer = this.#clock.every(this.#everyMs, () => {
      if (!this.#run()) this.#rest()
    })
  }

  /** For good. */
  stop(): void {
    this.#stopped = true
    this.#rest()
  }

  #rest(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
