// One timer for everything that falls due, exact to a tick. It runs after the turn's input has been read, and one tick
// later when the event loop was held up: input that waits to be read then is not overdue: this process is late.

import type { Clock, Timer } from '../../core/clock.ts'

/** Due times are exact to this many milliseconds. */
const TICK_MS = 10
/** A timer that fires later than this tells that we were held up. */
const HELD_UP_MS = 20

export class DueTimer {
  readonly #clock: Clock
  readonly #onDue: () => void
  #timer: Timer | undefined
  /** When the timer fires, in the clock's milliseconds; Infinity when it isn't set. */
  #due = Infinity
  #gaveTime = false
  #stopped = false
  readonly #fired = (): void => this.#afterInput()
  readonly #run = (): void => {
    this.#timer = undefined
    this.#due = Infinity
    if (!this.#stopped) this.#onDue()
  }

  /** `onDue` arms the timer anew for what is due next. */
  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /**
   * Sets the timer for a due time, but no sooner than a tick from now, unless it fires before. The timer's own
   * time is compared, not the due one: else a due time nearer than a tick would push the timer off with each call.
   */
  arm(now: number, next: number): void {
    const due = Math.max(next, now + TICK_MS)
    if (due < this.#due) this.#set(now, due)
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #set(now: number, due: number): void {
    this.#timer?.cancel()
    this.#due = due
    this.#timer = this.#clock.after(due - now, this.#fired)
  }

  #afterInput(): void {
    const now = this.#clock.now()
    this.#gaveTime = now - this.#due > HELD_UP_MS && !this.#gaveTime
    if (this.#gaveTime) this.#set(now, now + TICK_MS)
    else this.#clock.soon(this.#run)
  }
}
