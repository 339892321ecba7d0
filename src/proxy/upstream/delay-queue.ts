// Slots that fall due after one of a few fixed delays ("lanes"). In one lane all wait equally long, so the order
// of arrival is the order of falling due, and a list for each lane does what timers do.
// A slot is in one lane at most. Add and remove are O(1), take-due and next-due O(lanes); no closure or timer per slot.

import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'

export class DelayQueue {
  /** Milliseconds of each lane, growing. */
  readonly delays: readonly number[]
  readonly #due: Float64Array
  /** Lane of the slot + 1; 0 while the slot is in none. */
  readonly #lanes: Uint8Array
  readonly #rows: LinkedRows

  /** For slots 0..capacity-1; `delays` are at most 255, growing. */
  constructor(capacity: number, delays: readonly number[]) {
    this.delays = delays
    this.#due = new Float64Array(capacity)
    this.#lanes = new Uint8Array(capacity)
    this.#rows = new LinkedRows(capacity, delays.length)
  }

  /** The lane with the least delay that is no shorter than `delay`; the last one when all are shorter. */
  laneFor(delay: number): number {
    const { delays } = this
    let lane = 0
    while (lane < delays.length - 1 && delays[lane]! < delay) lane++
    return lane
  }

  /** Adds a slot to a lane, or moves it to that lane's end; returns when it falls due. */
  add(slot: number, now: number, lane = 0): number {
    this.remove(slot)
    const due = now + this.delays[lane]!
    this.#due[slot] = due
    this.#rows.addLast(lane, slot)
    this.#lanes[slot] = lane + 1
    return due
  }

  /** Removes a slot; nothing happens when the queue does not hold it. */
  remove(slot: number): void {
    const lane = this.#lanes[slot]! - 1
    if (lane < 0) return
    this.#rows.remove(lane, slot)
    this.#lanes[slot] = 0
  }

  has(slot: number): boolean {
    return this.#lanes[slot] !== 0
  }

  /** Takes a slot that is due by `now`, the first of its lane; -1 when there's none. */
  takeDue(now: number): number {
    for (let lane = 0; lane < this.delays.length; lane++) {
      const slot = this.#rows.first(lane)
      if (slot === NO_ROW || this.#due[slot]! > now) continue
      this.remove(slot)
      return slot
    }
    return NO_ROW
  }

  /** When the first slot falls due, in the clock's milliseconds; Infinity when the queue is empty. */
  get nextDue(): number {
    let first = Infinity
    for (let lane = 0; lane < this.delays.length; lane++) {
      const slot = this.#rows.first(lane)
      if (slot !== NO_ROW && this.#due[slot]! < first) first = this.#due[slot]!
    }
    return first
  }
}
