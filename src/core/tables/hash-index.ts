// HashIndex is an open-addressing index from hash to row number, for keys that are stored in the owner's arrays. It uses linear probing and
// backward-shift removal. A bucket has 4 octets: the row in the lower bits, and bits of the row's hash in the others. A probe skips rows
// with other bits without reading their keys, which are seldom in the processor's cache. When a removal moves a row, the owner returns
// the row's hash. The capacity is fixed, and at most three quarters of the buckets are in use.
//
// To look up: for (let at = index.start(hash); (row = index.row(at)) !== 0; at = index.next(at, hash)) compare.

import { int32Column } from './columns.ts'
import { invariant } from '../invariant.ts'

/** The owner of the keys. */
export interface RowHasher {
  hashOfRow(row: number): number
}

/** The part of the buckets in use when the table is full. */
const LOAD_MAX = 0.75

export class HashIndex {
  readonly #entries: Int32Array
  readonly #mask: number
  /** The bits of a bucket that are the row. The other bits are bits of the row's hash. */
  readonly #rowMask: number
  readonly #owner: RowHasher

  /** `capacity`: the most rows in the index. `rowMax`: the largest row number. Default: `capacity`. */
  constructor(capacity: number, owner: RowHasher, rowMax = capacity) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(8, capacity / LOAD_MAX)))
    this.#entries = int32Column(size)
    this.#mask = size - 1
    this.#rowMask = 2 ** (32 - Math.clz32(rowMax)) - 1
    this.#owner = owner
  }

  /** Returns the first bucket that may have a row with this hash. If there is none, returns the free bucket that ends the probe. */
  start(hash: number): number {
    return this.#skip(hash & this.#mask, hash)
  }

  /** Returns the next bucket after `at` that may have a row with this hash, or the free bucket that ends the probe. */
  next(at: number, hash: number): number {
    return this.#skip((at + 1) & this.#mask, hash)
  }

  /** Returns the row of a bucket, 0 for a free bucket. */
  row(at: number): number {
    return this.#entries[at]! & this.#rowMask
  }

  /** Adds a row that is not in the index. */
  insert(hash: number, row: number): void {
    invariant((row & this.#rowMask) === row, 'a row is no larger than was said')
    let at = hash & this.#mask
    while (this.#entries[at] !== 0) at = (at + 1) & this.#mask
    this.#entries[at] = (hash & ~this.#rowMask) | row
  }

  /** Removes a row. The owner must still be able to return the hash of every row, and also of this row. */
  remove(row: number): void {
    let hole = this.#owner.hashOfRow(row) & this.#mask
    while (this.row(hole) !== row) {
      invariant(this.#entries[hole] !== 0, 'a row to remove is in the index')
      hole = (hole + 1) & this.#mask
    }
    for (let at = (hole + 1) & this.#mask; this.#entries[at] !== 0; at = (at + 1) & this.#mask) {
      const home = this.#owner.hashOfRow(this.row(at)) & this.#mask
      if (((at - home) & this.#mask) >= ((at - hole) & this.#mask)) {
        this.#entries[hole] = this.#entries[at]!
        hole = at
      }
    }
    this.#entries[hole] = 0
  }

  #skip(from: number, hash: number): number {
    let at = from
    for (let entry = this.#entries[at]!; entry !== 0; entry = this.#entries[at]!) {
      if (((entry ^ hash) & ~this.#rowMask) === 0) break
      at = (at + 1) & this.#mask
    }
    return at
  }
}
