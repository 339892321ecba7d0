// The tree of labels under PatternIndex: rows in one typed array, children found by one hash table.
// A node stands for a run of pattern labels read from the right: `com`, then `example` under it. Its
// children are literal labels, at most one `*` (a whole label), and globs (stars and literals mixed).
// Globs also hang in buckets, rows of their own that are found by an anchor (glob.ts) of the label.
//
// Row, 8 ints (32 octets, so that two share a cache line):
//   parent | kind + 16 * length | label handle | children | exact | below | star child | anchors in use
// of a bucket, whose label is the anchor:
//   parent | kind + 16 * length | label handle | globs    | first glob of the chain | - | - | -
// Row 0 is the root. Freed rows are chained through `parent`. The table holds pairs (hash, row); it is cut
// into 256 parts by the top 8 bits of the hash, each growing alone, so that no single add rehashes all.
// Children of one parent are told apart by kind, length and octets; hashes alone never decide.

import { OctetArena } from '../core/octet-arena.ts'
import { labelHash } from './name-labels.ts'

export const LITERAL = 0
export const STAR = 1
export const GLOB = 2
/** A bucket's kind is BUCKET + the side of its anchor (0..2). */
export const BUCKET = 3

export const ROOT = 0

const ROW_INTS = 8
const PARENT = 0
const SHAPE = 1
const LABEL = 2
const CHILDREN = 3
const EXACT = 4
const BELOW = 5
const STAR_CHILD = 6
const ANCHORS = 7

const PARTS = 256
const FIRST_ROWS = 16
const FIRST_PLACES = 8

export class LabelTrie {
  #rows = new Int32Array(FIRST_ROWS * ROW_INTS)
  #fresh = 1
  #free = 0
  readonly #parts: Int32Array[] = []
  readonly #used = new Int32Array(PARTS)
  readonly #labels = new OctetArena()

  constructor() {
    for (let i = 0; i < PARTS; i++) this.#parts.push(new Int32Array(FIRST_PLACES * 2))
  }

  /** Octets held. */
  get octets(): number {
    let octets = this.#rows.byteLength + this.#labels.octets
    for (const part of this.#parts) octets += part.byteLength
    return octets
  }

  children(row: number): number {
    return this.#rows[row * ROW_INTS + CHILDREN]!
  }

  /** Chain of ids whose pattern ends here, or of a bucket its chain of globs. */
  exact(row: number): number {
    return this.#rows[row * ROW_INTS + EXACT]!
  }

  setExact(row: number, chain: number): void {
    this.#rows[row * ROW_INTS + EXACT] = chain
  }

  /** Chain of ids whose pattern is `**.` and then this node. */
  below(row: number): number {
    return this.#rows[row * ROW_INTS + BELOW]!
  }

  setBelow(row: number, chain: number): void {
    this.#rows[row * ROW_INTS + BELOW] = chain
  }

  /** The child for a whole `*` label, 0 if there is none. */
  starChild(row: number): number {
    return this.#rows[row * ROW_INTS + STAR_CHILD]!
  }

  /** One bit for each (side, anchor length) that has a bucket here: bit 8 * side + step. */
  anchors(row: number): number {
    return this.#rows[row * ROW_INTS + ANCHORS]!
  }

  setAnchors(row: number, bits: number): void {
    this.#rows[row * ROW_INTS + ANCHORS] = bits
  }

  /** Counts a glob into or out of a bucket. */
  countGlobs(bucket: number, by: 1 | -1): void {
    this.#rows[bucket * ROW_INTS + CHILDREN] = this.children(bucket) + by
  }

  /** Octets of a row's label are `labelBlock` from `labelOffset` on. */
  labelBlock(row: number): Uint8Array {
    return this.#labels.blockOf(this.#rows[row * ROW_INTS + LABEL]!)
  }

  labelOffset(row: number): number {
    return this.#labels.offsetOf(this.#rows[row * ROW_INTS + LABEL]!)
  }

  labelLength(row: number): number {
    return this.#rows[row * ROW_INTS + SHAPE]! >> 4
  }

  /** The child of that kind with that label, or 0. `hash` is the label's `labelHash`. */
  find(
    parent: number,
    kind: number,
    hash: number,
    octets: Uint8Array,
    offset: number,
    length: number,
  ): number {
    const full = placeHash(parent, kind, hash)
    const part = this.#parts[full >>> 24]!
    const mask = part.length - 1
    const shape = kind + (length << 4)
    for (let at = full << 1; ; at += 2) {
      const row = part[(at & mask) + 1]!
      if (row === 0) return 0
      if (part[at & mask] !== full) continue
      const ints = row * ROW_INTS
      if (this.#rows[ints + PARENT] !== parent || this.#rows[ints + SHAPE] !== shape) continue
      const handle = this.#rows[ints + LABEL]!
      if (
        same(this.#labels.blockOf(handle), this.#labels.offsetOf(handle), octets, offset, length)
      ) {
        return row
      }
    }
  }

  /** Makes the child that `find` didn't find. A star child's label is empty. */
  make(
    parent: number,
    kind: number,
    hash: number,
    octets: Uint8Array,
    offset: number,
    length: number,
  ): number {
    const row = this.#takeRow()
    const ints = row * ROW_INTS
    this.#rows.fill(0, ints, ints + ROW_INTS)
    this.#rows[ints + PARENT] = parent
    this.#rows[ints + SHAPE] = kind + (length << 4)
    if (kind < BUCKET) this.#rows[parent * ROW_INTS + CHILDREN] = this.children(parent) + 1
    if (kind === STAR) {
      this.#rows[parent * ROW_INTS + STAR_CHILD] = row
    } else {
      this.#rows[ints + LABEL] = this.#labels.store(octets, offset, length)
      this.#insert(placeHash(parent, kind, hash), row)
    }
    return row
  }

  /** Removes a row that has no children, ids or globs; returns its parent. */
  drop(row: number): number {
    const ints = row * ROW_INTS
    const parent = this.#rows[ints + PARENT]!
    const kind = this.#rows[ints + SHAPE]! & 15
    if (kind < BUCKET) this.#rows[parent * ROW_INTS + CHILDREN] = this.children(parent) - 1
    if (kind === STAR) {
      this.#rows[parent * ROW_INTS + STAR_CHILD] = 0
    } else {
      const length = this.labelLength(row)
      const hash = labelHash(this.labelBlock(row), this.labelOffset(row), length)
      this.#remove(placeHash(parent, kind, hash), row)
      this.#labels.free(this.#rows[ints + LABEL]!, length)
    }
    this.#rows[ints + PARENT] = this.#free
    this.#free = row
    return parent
  }

  isGlob(row: number): boolean {
    return (this.#rows[row * ROW_INTS + SHAPE]! & 15) === GLOB
  }

  parent(row: number): number {
    return this.#rows[row * ROW_INTS + PARENT]!
  }

  #takeRow(): number {
    const row = this.#free
    if (row !== 0) {
      this.#free = this.parent(row)
      return row
    }
    if (this.#fresh * ROW_INTS === this.#rows.length) {
      const rows = new Int32Array(this.#rows.length * 2)
      rows.set(this.#rows)
      this.#rows = rows
    }
    return this.#fresh++
  }

  #insert(full: number, row: number): void {
    const number = full >>> 24
    let part = this.#parts[number]!
    if (++this.#used[number]! * 4 > part.length) {
      part = grown(part)
      this.#parts[number] = part
    }
    put(part, full, row)
  }

  /** Takes a row out and moves later ones of the same run back, so that no gap hides them. */
  #remove(full: number, row: number): void {
    const part = this.#parts[full >>> 24]!
    const mask = part.length - 1
    this.#used[full >>> 24]!--
    let hole = (full << 1) & mask
    while (part[hole + 1] !== row) hole = (hole + 2) & mask
    for (let at = (hole + 2) & mask; part[at + 1] !== 0; at = (at + 2) & mask) {
      const home = (part[at]! << 1) & mask
      if (((at - home) & mask) < ((at - hole) & mask)) continue
      part[hole] = part[at]!
      part[hole + 1] = part[at + 1]!
      hole = at
    }
    part[hole] = 0
    part[hole + 1] = 0
  }
}

/** Where a child is in the table: its label's hash mixed with its parent and kind. */
function placeHash(parent: number, kind: number, hash: number): number {
  let full = Math.imul(parent * 8 + kind, 0x9e3779b1) ^ hash
  full = Math.imul(full ^ (full >>> 16), 0x85ebca6b)
  full = Math.imul(full ^ (full >>> 13), 0xc2b2ae35)
  return full ^ (full >>> 16)
}

function same(
  a: Uint8Array,
  aOffset: number,
  b: Uint8Array,
  bOffset: number,
  length: number,
): boolean {
  for (let i = 0; i < length; i++) if (a[aOffset + i] !== b[bOffset + i]) return false
  return true
}

function grown(part: Int32Array): Int32Array {
  const larger = new Int32Array(part.length * 2)
  for (let at = 0; at < part.length; at += 2) {
    if (part[at + 1] !== 0) put(larger, part[at]!, part[at + 1]!)
  }
  return larger
}

function put(part: Int32Array, full: number, row: number): void {
  const mask = part.length - 1
  let at = (full << 1) & mask
  while (part[at + 1] !== 0) at = (at + 2) & mask
  part[at] = full
  part[at + 1] = row
}
