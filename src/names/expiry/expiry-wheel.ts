// ExpiryWheel orders rows by the second at which they are due. It has 2^17 buckets of one second (36 hours), and each bucket is a linked
// list. Adding, moving and removing a row is O(1). If a row is due later than the last bucket, it is put there, and `takeDue` returns
// the row too early. The caller then places the row again.

import { int32Column } from '../../core/tables/columns.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'

const BUCKETS = 1 << 17

export class ExpiryWheel {
  readonly #rows: LinkedRows
  /** Bucket + 1 of each row, 0 for a row that is in no bucket. */
  readonly #bucket: Int32Array
  #tick: number

  constructor({ capacity, tick }: { readonly capacity: number; readonly tick: number }) {
    this.#rows = new LinkedRows(capacity + 1, BUCKETS)
    this.#bucket = int32Column(capacity + 1)
    this.#tick = tick
  }

  /** Moves a row to the bucket of the second `due`. If that second is over, moves the row to the first bucket that is still to be read. */
  place(row: number, due: number): void {
    const tick = Math.min(Math.max(due, this.#tick), this.#tick + BUCKETS - 1)
    const bucket = tick & (BUCKETS - 1)
    if (this.#bucket[row] === bucket + 1) return
    this.remove(row)
    this.#rows.addFirst(bucket, row)
    this.#bucket[row] = bucket + 1
  }

  /** Returns true if the row is in a bucket. */
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

  /** Takes one row out of the buckets up to the second `now`. Returns 0 when they are empty. */
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
