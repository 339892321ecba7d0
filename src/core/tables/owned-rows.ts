// OwnedRows finds rows by (owner, key) and lists the rows of each owner. The first row of an owner is found from the owner and is in no
// index, because most owners have only one row. A new row is added behind the first one. Rows are numbered from 1, and 0 is no row.

import { HashIndex, type RowHasher } from './hash-index.ts'
import { hashPair } from './keyed-hash.ts'
import { RowLists } from './row-lists.ts'

export interface OwnedRowsOptions {
  /** The most rows at one time. */
  readonly capacity: number
  /** The largest row. Default: `capacity`. */
  readonly rows?: number
  /** The first row of each owner: a column of the owners. Only OwnedRows writes it. */
  readonly first: Int32Array
  /** The owner of each row. The table sets it before `add`, and does not change it until `remove` has returned. */
  readonly owner: Int32Array
  /** The key of each row, set and kept in the same way as `owner`. */
  readonly key: Int32Array
}

export class OwnedRows implements RowHasher {
  readonly next: Int32Array
  readonly #lists: RowLists
  readonly #index: HashIndex
  readonly #first: Int32Array
  readonly #owner: Int32Array
  readonly #key: Int32Array

  constructor({ capacity, rows = capacity, first, owner, key }: OwnedRowsOptions) {
    this.#lists = new RowLists({ rows, first })
    this.#index = new HashIndex(capacity, this, rows)
    this.next = this.#lists.next
    this.#first = first
    this.#owner = owner
    this.#key = key
  }

  /** Returns the row of an owner with this key, 0 when there is none. */
  find(owner: number, key: number): number {
    const first = this.#first[owner]!
    if (first === 0 || this.#key[first] === key) return first
    if (this.next[first] === 0) return 0
    const hash = hashPair(owner, key)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.#key[row] === key && this.#owner[row] === owner)) return row
    }
  }

  /** Adds a row. No row with the same owner and key must be there. */
  add(row: number): void {
    const owner = this.#owner[row]!
    const first = this.#first[owner]!
    if (first === 0) return this.#lists.add(owner, row)
    this.#lists.addBehind(first, row)
    this.#index.insert(this.hashOfRow(row), row)
  }

  remove(row: number): void {
    const owner = this.#owner[row]!
    // If the first row is removed, the next row becomes the first and leaves the index.
    const indexed = this.#first[owner] === row ? this.next[row]! : row
    if (indexed !== 0) this.#index.remove(indexed)
    this.#lists.remove(owner, row)
  }

  hashOfRow(row: number): number {
    return hashPair(this.#owner[row]!, this.#key[row]!)
  }
}
