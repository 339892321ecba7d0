// An open-addressing index from hash to row number (linear probing, backward-shift removal), for keys that
// live in the owner's own arrays. It holds 4 octets a bucket and no hashes: the owner tells a row's hash
// when a removal has to move it. Capacity is fixed; the load stays at or under three quarters.
//
// To look up: for (let at = index.start(hash); (row = index.row(at)) !== 0; at = index.next(at)) compare.

import { invariant } from './invariant.ts'

/** The owner of the keys. */
export interface RowHasher {
  hashOfRow(row: number): number
}

/** Share of buckets in use when the table is full. */
const LOAD_MAX = 0.75

export class HashIndex {
  readonly #rows: Int32Array
  readonly #mask: number
  readonly #owner: RowHasher

  constructor(capacity: number, owner: RowHasher) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(8, capacity / LOAD_MAX)))
    this.#rows = new Int32Array(size)
    this.#mask = size - 1
    this.#owner = owner
  }

  start(hash: number): number {
    return hash & this.#mask
  }

  next(at: number): number {
    return (at + 1) & this.#mask
  }

  /** The row at a bucket, 0 where a probe ends. */
  row(at: number): number {
    return this.#rows[at]!
  }

  /** Adds a row that is not in the index. */
  insert(hash: number, row: number): void {
    let at = hash & this.#mask
    while (this.#rows[at] !== 0) at = (at + 1) & this.#mask
    this.#rows[at] = row
  }

  /** Removes a row while the owner can still tell the hashes of all rows, this one's included. */
  remove(row: number): void {
    let hole = this.#owner.hashOfRow(row) & this.#mask
    while (this.#rows[hole] !== row) {
      invariant(this.#rows[hole] !== 0, 'a row to remove is in the index')
      hole = (hole + 1) & this.#mask
    }
    for (let at = (hole + 1) & this.#mask; this.#rows[at] !== 0; at = (at + 1) & this.#mask) {
      const home = this.#owner.hashOfRow(this.#rows[at]!) & this.#mask
      if (((at - home) & this.#mask) >= ((at - hole) & this.#mask)) {
        this.#rows[hole] = this.#rows[at]!
        hole = at
      }
    }
    this.#rows[hole] = 0
  }
}

/** Hash of two numbers, mixed so that low bits serve as a bucket. */
export function hashPair(a: number, b: number): number {
  let hash = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
