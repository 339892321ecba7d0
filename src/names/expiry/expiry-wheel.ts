// Rows in the order of the second at which they are due: a wheel of 2^17 buckets of one second (36 hours). Each bucket is a doubly
// linked list in typed arrays. Adding, moving and removing a row is O(1). A row that is due later than the wheel reaches waits in
// the farthest bucket and is looked at again then.

const BUCKETS = 1 << 17

export class ExpiryWheel {
  readonly #heads = new Int32Array(BUCKETS)
  readonly #next: Int32Array
  readonly #previous: Int32Array
  /** Bucket + 1 of a row, 0 when it is in none. */
  readonly #bucket: Int32Array
  #tick: number

  constructor(options: { readonly capacity: number; readonly tick: number }) {
    this.#next = new Int32Array(options.capacity + 1)
    this.#previous = new Int32Array(options.capacity + 1)
    this.#bucket = new Int32Array(options.capacity + 1)
    this.#tick = options.tick
  }

  /** Puts a row at the second `due` (or the next one not yet looked at), out of wherever it was. */
  place(row: number, due: number): void {
    const tick = Math.min(Math.max(due, this.#tick), this.#tick + BUCKETS - 1)
    const bucket = tick & (BUCKETS - 1)
    if (this.#bucket[row] === bucket + 1) return
    this.remove(row)
    const head = this.#heads[bucket]!
    this.#next[row] = head
    this.#previous[row] = 0
    if (head !== 0) this.#previous[head] = row
    this.#heads[bucket] = row
    this.#bucket[row] = bucket + 1
  }

  /** Whether a row is in any bucket. */
  has(row: number): boolean {
    return this.#bucket[row] !== 0
  }

  /** Takes a row out; nothing when it is in no bucket. */
  remove(row: number): void {
    const bucket = this.#bucket[row]! - 1
    if (bucket < 0) return
    const next = this.#next[row]!
    const previous = this.#previous[row]!
    if (next !== 0) this.#previous[next] = previous
    if (previous !== 0) this.#next[previous] = next
    else this.#heads[bucket] = next
    this.#bucket[row] = 0
  }

  /** Takes out one row that was placed at or before `now`, 0 when there is none. */
  takeDue(now: number): number {
    while (this.#tick <= now) {
      const row = this.#heads[this.#tick & (BUCKETS - 1)]!
      if (row !== 0) {
        this.remove(row)
        return row
      }
      if (this.#tick === now) return 0
      this.#tick++
    }
    return 0
  }
}
