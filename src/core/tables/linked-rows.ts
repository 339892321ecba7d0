// LinkedRows keeps doubly linked lists of row numbers in typed arrays, for tables that keep their rows in order or in buckets. Rows are
// 0..rows-1, lists are 0..lists-1, and -1 is no row. A row is in at most one list, and the owner remembers in which. Every operation is
// O(1) and allocates nothing. Rows and lists that were never used need no memory.

import { int32Column } from './columns.ts'

/** No row: the result of `after` for the last row of a list, and of `first` and `last` for an empty list. */
export const NO_ROW = -1

export class LinkedRows {
  // All links contain row + 1. So 0 is no row, and a new array does not have to be filled.
  readonly #first: Int32Array
  readonly #after: Int32Array
  /** The row before a row. For the first row of a list: the last row of the list. */
  readonly #before: Int32Array

  constructor(rows: number, lists: number) {
    this.#first = int32Column(lists)
    this.#after = int32Column(rows)
    this.#before = int32Column(rows)
  }

  first(list: number): number {
    return this.#first[list]! - 1
  }

  last(list: number): number {
    const first = this.#first[list]!
    return first === 0 ? NO_ROW : this.#before[first - 1]! - 1
  }

  /** Returns the row after `row` in its list. */
  after(row: number): number {
    return this.#after[row]! - 1
  }

  /** Adds a row at the front of a list. The row must be in no list. */
  addFirst(list: number, row: number): void {
    const first = this.#first[list]!
    this.#after[row] = first
    this.#before[row] = first === 0 ? row + 1 : this.#before[first - 1]!
    if (first !== 0) this.#before[first - 1] = row + 1
    this.#first[list] = row + 1
  }

  /** Adds a row at the end of a list. The row must be in no list. */
  addLast(list: number, row: number): void {
    const first = this.#first[list]!
    if (first === 0) return this.addFirst(list, row)
    const last = this.#before[first - 1]!
    this.#after[row] = 0
    this.#before[row] = last
    this.#after[last - 1] = row + 1
    this.#before[first - 1] = row + 1
  }

  /** Removes a row from its list. `list` must be this list. */
  remove(list: number, row: number): void {
    const after = this.#after[row]!
    const before = this.#before[row]!
    const first = this.#first[list]!
    if (first === row + 1) this.#first[list] = after
    else this.#after[before - 1] = after
    if (after !== 0) this.#before[after - 1] = before
    else if (first !== row + 1) this.#before[first - 1] = before
  }
}
