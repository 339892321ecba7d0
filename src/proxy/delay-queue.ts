// Slots that each fall due a fixed delay after they were added: since all wait equally long, the order
// of arrival is the order of falling due, and a doubly linked list in typed arrays does what timers do.
// Add, remove and take-due are O(1); no closure or timer per slot.

const NONE = -1

export class DelayQueue {
  readonly delay: number
  readonly #due: Float64Array
  readonly #next: Int32Array
  readonly #previous: Int32Array
  /** 1 while the slot is in the queue. */
  readonly #queued: Uint8Array
  #head = NONE
  #tail = NONE

  /** For slots 0..capacity-1, each due `delay` milliseconds after it was added. */
  constructor(capacity: number, delay: number) {
    this.delay = delay
    this.#due = new Float64Array(capacity)
    this.#next = new Int32Array(capacity)
    this.#previous = new Int32Array(capacity)
    this.#queued = new Uint8Array(capacity)
  }

  /** Adds a slot, or moves it to the end with a new due time. */
  add(slot: number, now: number): void {
    this.remove(slot)
    this.#due[slot] = now + this.delay
    this.#previous[slot] = this.#tail
    this.#next[slot] = NONE
    if (this.#tail === NONE) this.#head = slot
    else this.#next[this.#tail] = slot
    this.#tail = slot
    this.#queued[slot] = 1
  }

  /** Removes a slot; nothing happens when it's not queued. */
  remove(slot: number): void {
    if (this.#queued[slot] === 0) return
    const next = this.#next[slot]!
    const previous = this.#previous[slot]!
    if (previous === NONE) this.#head = next
    else this.#next[previous] = next
    if (next === NONE) this.#tail = previous
    else this.#previous[next] = previous
    this.#queued[slot] = 0
  }

  has(slot: number): boolean {
    return this.#queued[slot] === 1
  }

  /** Takes the longest-waiting slot that is due by `now`; -1 when there's none. */
  takeDue(now: number): number {
    const slot = this.#head
    if (slot === NONE || this.#due[slot]! > now) return NONE
    this.remove(slot)
    return slot
  }

  /** When the first slot falls due, in the clock's milliseconds; Infinity when the queue is empty. */
  get nextDue(): number {
    return this.#head === NONE ? Infinity : this.#due[this.#head]!
  }
}
