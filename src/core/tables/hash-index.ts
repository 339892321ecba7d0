// An open-addressing index from hash to row number (linear probing, backward-shift removal), for keys that
// live in the owner's own arrays. A bucket has 4 octets: the row, and above it as many bits of its hash as there is room
// for, so that rows of other hashes are passed over without a look at their keys, which are seldom in the cache. The owner
// tells a row's hash when a removal has to move it. Capacity is fixed; the load stays at or under three quarters.
//
// To look up: for (let at = index.start(hash); (row = index.row(at)) !== 0; at = index.next(at, hash)) compare.

import { invariant } from '../invariant.ts'

/** The owner of the keys. */
export interface RowHasher {
  hashOfRow(row: number): number
}

/** Share of buckets in use when the table is full. */
const LOAD_MAX = 0.75

export class HashIndex {
  readonly #entries: Int32Array
  readonly #mask: number
  /** Bits of an entry that are the row; the others are those of its hash. */
  readonly #rowMask: number
  readonly #owner: RowHasher

  /** `rowMax`: the largest row there may be; default `capacity`. */
  constructor(capacity: number, owner: RowHasher, rowMax = capacity) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(8, capacity / LOAD_MAX)))
    this.#entries = new Int32Array(size)
    this.#mask = size - 1
    this.#rowMask = 2 ** (32 - Math.clz32(rowMax)) - 1
    this.#owner = owner
  }

  /** The first bucket at which a row with that hash may stand, else the one where the probe ends. */
  start(hash: number): number {
    return this.#skip(hash & this.#mask, hash)
  }

  /** The bucket after this one, in the same way. */
  next(at: number, hash: number): number {
    return this.#skip((at + 1) & this.#mask, hash)
  }

  /** The row at a bucket, 0 where a probe ends. */
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

  /** Removes a row while the owner can still tell the hashes of all rows, this one's included. */
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
