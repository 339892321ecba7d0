// RowLists keeps doubly linked lists over the rows of a table. The links are columns; rows are numbered from 1, and 0 is no row. A column
// of the owner holds the first row of each list. A row is in at most one list. Every operation is O(1).
//
// A list with one row writes only to the owner's column and not to the links. So if most lists have one row, the links need almost no
// memory. LinkedRows also knows the last row of a list, but it writes to the links of every list.

import { int32Column } from './columns.ts'
import { put } from './slots.ts'

export class RowLists {
  /** The first row of each list. */
  readonly first: Int32Array
  /** The row that follows a row in its list, 0 for the last one. */
  readonly next: Int32Array
  /** The row before a row in its list, 0 for the first one. */
  readonly previous: Int32Array

  /** `first`: a column of the lists' owner. Only this object writes it. */
  constructor(options: { readonly rows: number; readonly first: Int32Array }) {
    this.first = options.first
    this.next = int32Column(options.rows + 1)
    this.previous = int32Column(options.rows + 1)
  }

  /** Adds a row at the front of a list. */
  add(list: number, row: number): void {
    this.#link(row, 0, this.first[list]!)
    this.first[list] = row
  }

  /** Adds a row behind the row `before` of a list. */
  addBehind(before: number, row: number): void {
    this.#link(row, before, this.next[before]!)
    this.next[before] = row
  }

  remove(list: number, row: number): void {
    const next = this.next[row]!
    const previous = this.previous[row]!
    if (next !== 0) this.previous[next] = previous
    if (previous !== 0) this.next[previous] = next
    else this.first[list] = next
  }

  #link(row: number, previous: number, next: number): void {
    put(this.next, row, next)
    put(this.previous, row, previous)
    if (next !== 0) this.previous[next] = row
  }
}
