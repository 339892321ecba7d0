// Rows in the order of the second at which they are due: a wheel of 2^17 buckets of one second (36 hours). Each bucket is a linked
// list. Adding, moving and removing a row is O(1). A row that is due later than the wheel reaches waits in
// the farthest bucket and is looked at again then.

import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'

const BUCKETS = 1 << 17

export class ExpiryWheel {
  readonly #rows: LinkedRows
  /** Bucket + 1 of a row, 0 when it is in none. */
  readonly #bucket: Int32Array
  #tick: number

  constructor({ capacity, tick }: { readonly capacity: number; readonly tick: number }) {
    this.#rows = new LinkedRows(capacity + 1, BUCKETS)
    this.#bucket = new Int32Array(capacity + 1)
    this.#tick = tick
  }

  /** Moves a row to the second `due`, or to the next second not yet looked at. */
  place(row: number, due: number): void {
    const tick = Math.min(Math.max(due, this.#tick), this.#tick + BUCKETS - 1)
    const bucket = tick & (BUCKETS - 1)
    if (this.#bucket[row] === bucket + 1) return
    this.remove(row)
    this.#rows.addFirst(bucket, row)
    this.#bucket[row] = bucket + 1
  }

  /** Whether a row is in any bucket. */
  has(row: number): boolean {
    return this.#bucket[row] !== 0
  }

  /** Removes a row, if it is in any bucket. */
  remove(row: number): void {
    const bucket = this.#bucket[row]! - 1
    if (bucket < 0) return
    this.#rows.remove(bucket, row)
    this.#bucket[row] = 0
  }

  /** Takes out one row that is due at or before `now`; 0 when there is none. */
  takeDue(now: number): number {
    while (this.#tick <= now) {
      const row = this.#rows.first(this.#tick & (BUCKETS - 1))
      if (row !== NO_ROW) {
        this.remove(row)
        return row
      }
      if (this.#tick === now) return 0
      this.#tick++
    }
    return 0
  }
}
