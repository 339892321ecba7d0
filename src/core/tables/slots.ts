// Slots gives out row numbers for tables in typed arrays: 1..capacity, and 0 is no row. Freed rows are given out again, the row freed last
// before the others. The array has its full size from the start. The system provides the pages of a zeroed array only when they are
// touched. So an empty table needs almost no memory, and nothing is copied when a table fills.

import { int32Column } from './columns.ts'
import { invariant } from '../invariant.ts'

export class Slots {
  readonly capacity: number
  readonly #nextFree: Int32Array
  #firstFree = 0
  #fresh = 1
  #used = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.#nextFree = int32Column(capacity + 1)
  }

  get used(): number {
    return this.#used
  }

  /** The highest row that was ever given out. A pass over a table reads rows 1..high. */
  get high(): number {
    return this.#fresh - 1
  }

  /** Returns a row, or 0 when all rows are in use. */
  take(): number {
    if (this.#firstFree !== 0) {
      const row = this.#firstFree
      this.#firstFree = this.#nextFree[row]!
      this.#nextFree[row] = 0
      this.#used++
      return row
    }
    if (this.#fresh > this.capacity) return 0
    this.#used++
    return this.#fresh++
  }

  free(row: number): void {
    invariant(row > 0 && row < this.#fresh, 'a freed row was handed out before')
    this.#nextFree[row] = this.#firstFree
    this.#firstFree = row
    this.#used--
  }
}

/** Writes a value to a column if the value is another one. Pages of zeros that are never written need no memory. */
export function put(column: Int32Array, row: number, value: number): void {
  if (column[row] !== value) column[row] = value
}
