// DelayQueue orders slots by the time at which they are due. DueTimer is the one timer that runs when the first slot is due.
// A slot needs no closure and no timer.

import type { Clock, Timer } from '../../core/clock.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'

/**
 * DelayQueue holds slots that are due after one of a few fixed delays ("lanes"). All slots of a lane wait equally long, so they are
 * due in order of arrival, and one list per lane replaces timers. A slot is in one lane at most. `add` and `remove` are O(1),
 * `takeDue` and `nextDue` are O(lanes).
 */
export class DelayQueue {
  /** The delay of each lane in milliseconds, in ascending order. */
  readonly delays: readonly number[]
  readonly #due: Float64Array
  /** The slot's lane + 1; 0 while the slot is in no lane. */
  readonly #lanes: Uint8Array
  readonly #rows: LinkedRows

  /** Makes a queue for slots 0..capacity-1. `delays` has at most 255 elements, in ascending order. */
  constructor(capacity: number, delays: readonly number[]) {
    this.delays = delays
    this.#due = new Float64Array(capacity)
    this.#lanes = new Uint8Array(capacity)
    this.#rows = new LinkedRows(capacity, delays.length)
  }

  /** Returns the lane with the shortest delay that is at least `delay`; the last lane if all delays are shorter. */
  laneFor(delay: number): number {
    const { delays } = this
    let lane = 0
    while (lane < delays.length - 1 && delays[lane]! < delay) lane++
    return lane
  }

  /** Adds a slot to the end of a lane, after removing it from any other. Returns the time at which it is due. */
  add(slot: number, now: number, lane = 0): number {
    this.remove(slot)
    const due = now + this.delays[lane]!
    this.#due[slot] = due
    this.#rows.addLast(lane, slot)
    this.#lanes[slot] = lane + 1
    return due
  }

  /** Removes a slot. Does nothing if the slot is not in the queue. */
  remove(slot: number): void {
    const lane = this.#lanes[slot]! - 1
    if (lane < 0) return
    this.#rows.remove(lane, slot)
    this.#lanes[slot] = 0
  }

  has(slot: number): boolean {
    return this.#lanes[slot] !== 0
  }

  /** Removes and returns a slot that is due at `now`, the first of its lane; -1 if there is none. */
  takeDue(now: number): number {
    for (let lane = 0; lane < this.delays.length; lane++) {
      const slot = this.#rows.first(lane)
      if (slot === NO_ROW || this.#due[slot]! > now) continue
      this.remove(slot)
      return slot
    }
    return NO_ROW
  }

  /** The time at which the next slot is due, in the clock's milliseconds; Infinity if the queue is empty. */
  get nextDue(): number {
    let first = Infinity
    for (let lane = 0; lane < this.delays.length; lane++) {
      const slot = this.#rows.first(lane)
      if (slot !== NO_ROW && this.#due[slot]! < first) first = this.#due[slot]!
    }
    return first
  }
}

/** Precision of due times, in milliseconds. */
const TICK_MS = 10
/** A timer that fires later than this, in milliseconds, shows that the event loop was blocked. */
const HELD_UP_MS = 20

/**
 * DueTimer is one timer for all due times, exact to TICK_MS. It runs after the turn's input has been read. If the event loop was
 * blocked, it runs one tick later: answers that wait to be read are not overdue, because this process is late itself.
 */
export class DueTimer {
  readonly #clock: Clock
  readonly #onDue: () => void
  #timer: Timer | undefined
  /** When the timer fires, in the clock's milliseconds; Infinity if it is not set. */
  #due = Infinity
  #gaveTime = false
  #stopped = false
  readonly #fired = (): void => this.#afterInput()
  readonly #run = (): void => {
    this.#timer = undefined
    this.#due = Infinity
    if (!this.#stopped) this.#onDue()
  }

  /** `onDue` must call `arm` for the next due time. */
  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /**
   * Sets the timer for due time `next`, but at the earliest one tick from now. If the timer fires before that, it stays. The
   * comparison uses the time at which the timer fires, because otherwise each call with a nearer due time would delay the timer.
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
