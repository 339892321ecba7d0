// Slots that fall due after one of a few fixed delays ("lanes"). In one lane all wait equally long, so the order
// of arrival is the order of falling due, and a doubly linked list in typed arrays does what timers do.
// A slot is in one lane at most. Add and remove are O(1), take-due and next-due O(lanes); no closure or timer per slot.

const NONE = -1

export class DelayQueue {
  /** Milliseconds of each lane, growing. */
  readonly delays: readonly number[]
  readonly #due: Float64Array
  readonly #next: Int32Array
  readonly #previous: Int32Array
  /** Lane of the slot + 1; 0 while the slot is in none. */
  readonly #lanes: Uint8Array
  readonly #heads: Int32Array
  readonly #tails: Int32Array

  /** For slots 0..capacity-1; `delays` are at most 255, growing. */
  constructor(capacity: number, delays: readonly number[]) {
    this.delays = delays
    this.#due = new Float64Array(capacity)
    this.#next = new Int32Array(capacity)
    this.#previous = new Int32Array(capacity)
    this.#lanes = new Uint8Array(capacity)
    this.#heads = new Int32Array(delays.length).fill(NONE)
    this.#tails = new Int32Array(delays.length).fill(NONE)
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
    const tail = this.#tails[lane]!
    this.#due[slot] = due
    this.#previous[slot] = tail
    this.#next[slot] = NONE
    if (tail === NONE) this.#heads[lane] = slot
    else this.#next[tail] = slot
    this.#tails[lane] = slot
    this.#lanes[slot] = lane + 1
    return due
  }

  /** Removes a slot; nothing happens when it's not queued. */
  remove(slot: number): void {
    const lane = this.#lanes[slot]! - 1
    if (lane < 0) return
    const next = this.#next[slot]!
    const previous = this.#previous[slot]!
    if (previous === NONE) this.#heads[lane] = next
    else this.#next[previous] = next
    if (next === NONE) this.#tails[lane] = previous
    else this.#previous[next] = previous
    this.#lanes[slot] = 0
  }

  has(slot: number): boolean {
    return this.#lanes[slot] !== 0
  }

  /** Takes a slot that is due by `now`, the first of its lane; -1 when there's none. */
  takeDue(now: number): number {
    for (let lane = 0; lane < this.#heads.length; lane++) {
      const slot = this.#heads[lane]!
      if (slot === NONE || this.#due[slot]! > now) continue
      this.remove(slot)
      return slot
    }
    return NONE
  }

  /** When the first slot falls due, in the clock's milliseconds; Infinity when the queue is empty. */
  get nextDue(): number {
    let first = Infinity
    for (let lane = 0; lane < this.#heads.length; lane++) {
      const slot = this.#heads[lane]!
      if (slot !== NONE && this.#due[slot]! < first) first = this.#due[slot]!
    }
    return first
  }
}
