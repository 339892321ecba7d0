// Row numbers for tables kept in typed arrays: 1..capacity, 0 meaning "no row". Freed rows are handed out
// again, last freed first. The array is as large as the bound from the start: the system gives the pages
// of a zeroed array only when they are touched, so an empty table costs nothing and growth copies nothing.

import { invariant } from '../invariant.ts'

export class Slots {
  readonly capacity: number
  readonly #nextFree: Int32Array
  #firstFree = 0
  #fresh = 1
  #used = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.#nextFree = new Int32Array(capacity + 1)
  }

  get used(): number {
    return this.#used
  }

  /** Highest row ever handed out; rows 1..high may be looked at. */
  get high(): number {
    return this.#fresh - 1
  }

  /** A row, or 0 when all are in use. */
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

/** Writes a column that most rows leave at what it is: pages of zeros that nobody writes to cost no memory. */
export function put(column: Int32Array, row: number, value: number): void {
  if (column[row] !== value) column[row] = value
}
