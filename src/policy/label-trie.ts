// The tree of labels under PatternIndex: rows in one typed array, children found by hash tables. A node
// stands for a run of pattern labels read from the right: `com`, then `example` under it. Its children are
// literal labels, at most one `*` (a whole label), and globs (stars and literals mixed).
//
// Row, 16 ints (64 octets):
//   parent | kind + 4 * length | hash | children | exact | one | below | star child | anchors | 28 octets of label
// A `*` at a pattern's left end needs no row: its ids are `one` of the node behind it.
// Labels of more than 28 octets are kept apart. Row 0 is the root; freed rows are chained through `parent`.
// Children of one parent are told apart by kind, length and octets; hashes alone never decide. A node's hash
// is made from the hashes of its labels and not from row numbers, so that the look-ups of all labels of a
// name can be under way in the processor at once.

import { labelHash } from './name-labels.ts'
import { placeOf, RowTable } from './row-table.ts'

export const LITERAL = 0
export const STAR = 1
export const GLOB = 2

export const ROOT = 0
export const ROOT_HASH = 0

const ROW_INTS = 16
const PARENT = 0
const SHAPE = 1
const HASH = 2
const CHILDREN = 3
const EXACT = 4
const ONE = 5
const BELOW = 6
const STAR_CHILD = 7
const ANCHORS = 8
const ROW_OCTETS = 64
const LABEL_AT = 36
const LABEL_ROOM = 28

const KIND_BITS = 2
const FIRST_ROWS = 16

export class LabelTrie {
  #rows = new Int32Array(FIRST_ROWS * ROW_INTS)
  #octets = new Uint8Array(this.#rows.buffer)
  #fresh = 1
  #free = 0
  readonly #table = new RowTable()
  readonly #longLabels = new Map<number, Uint8Array>()

  /** Octets held in rows and tables. */
  get octets(): number {
    return this.#rows.byteLength + this.#table.octets
  }

  parent(row: number): number {
    return this.#rows[row * ROW_INTS + PARENT]!
  }

  isGlob(row: number): boolean {
    return (this.#rows[row * ROW_INTS + SHAPE]! & ((1 << KIND_BITS) - 1)) === GLOB
  }

  hash(row: number): number {
    return this.#rows[row * ROW_INTS + HASH]!
  }

  /** How many children of all kinds. */
  children(row: number): number {
    return this.#rows[row * ROW_INTS + CHILDREN]!
  }

  /** List (IdChains) of ids whose pattern ends here. */
  exact(row: number): number {
    return this.#rows[row * ROW_INTS + EXACT]!
  }

  setExact(row: number, list: number): void {
    this.#rows[row * ROW_INTS + EXACT] = list
  }

  /** List of ids whose pattern is `*.` and then this node. */
  one(row: number): number {
    return this.#rows[row * ROW_INTS + ONE]!
  }

  setOne(row: number, list: number): void {
    this.#rows[row * ROW_INTS + ONE] = list
  }

  /** List of ids whose pattern is `**.` and then this node. */
  below(row: number): number {
    return this.#rows[row * ROW_INTS + BELOW]!
  }

  setBelow(row: number, list: number): void {
    this.#rows[row * ROW_INTS + BELOW] = list
  }

  /** The child for a whole `*` label with others before it, 0 if there is none. */
  starChild(row: number): number {
    return this.#rows[row * ROW_INTS + STAR_CHILD]!
  }

  /** A bit for each kind of anchor that globs under this node have buckets by (GlobBuckets). */
  anchors(row: number): number {
    return this.#rows[row * ROW_INTS + ANCHORS]!
  }

  setAnchors(row: number, bits: number): void {
    this.#rows[row * ROW_INTS + ANCHORS] = bits
  }

  /** A row's label is `labelLength` octets of `labelBlock` from `labelOffset` on; valid until the next `make`. */
  labelBlock(row: number): Uint8Array {
    return this.#longLabels.get(row) ?? this.#octets
  }

  labelOffset(row: number): number {
    return this.labelLength(row) > LABEL_ROOM ? 0 : row * ROW_OCTETS + LABEL_AT
  }

  labelLength(row: number): number {
    return this.#rows[row * ROW_INTS + SHAPE]! >> KIND_BITS
  }

  /** The child of that kind with that label, or 0; `hash` is its `childHash`. */
  find(
    parent: number,
    kind: number,
    hash: number,
    octets: Uint8Array,
    offset: number,
    length: number,
  ): number {
    const part = this.#table.partOf(hash)
    const mask = part.length - 1
    for (let at = placeOf(hash, part); ; at = (at + 2) & mask) {
      const row = part[at + 1]!
      if (row === 0) return 0
      if (part[at] !== hash) continue
      const ints = row * ROW_INTS
      if (this.#rows[ints + PARENT] !== parent) continue
      if (this.#rows[ints + SHAPE] !== kind + (length << KIND_BITS)) continue
      if (this.#hasLabel(row, octets, offset, length)) return row
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
    this.#rows[ints + SHAPE] = kind + (length << KIND_BITS)
    this.#rows[ints + HASH] = hash
    const label = octets.subarray(offset, offset + length)
    if (length > LABEL_ROOM) this.#longLabels.set(row, label.slice())
    else this.#octets.set(label, row * ROW_OCTETS + LABEL_AT)
    this.#rows[parent * ROW_INTS + CHILDREN] = this.children(parent) + 1
    if (kind === STAR) this.#rows[parent * ROW_INTS + STAR_CHILD] = row
    else this.#table.insert(hash, row)
    return row
  }

  /** Whether nothing hangs on the node any more. */
  isBare(row: number): boolean {
    return (
      this.children(row) === 0 &&
      this.exact(row) === 0 &&
      this.one(row) === 0 &&
      this.below(row) === 0
    )
  }

  /** Removes a bare row; returns its parent. */
  drop(row: number): number {
    const parent = this.parent(row)
    const kind = this.#rows[row * ROW_INTS + SHAPE]! & ((1 << KIND_BITS) - 1)
    this.#rows[parent * ROW_INTS + CHILDREN] = this.children(parent) - 1
    if (kind === STAR) this.#rows[parent * ROW_INTS + STAR_CHILD] = 0
    else this.#table.remove(this.hash(row), row)
    this.#longLabels.delete(row)
    this.#rows[row * ROW_INTS + PARENT] = this.#free
    this.#free = row
    return parent
  }

  #hasLabel(row: number, octets: Uint8Array, offset: number, length: number): boolean {
    if (length > LABEL_ROOM) return same(this.labelBlock(row), 0, octets, offset, length)
    return same(this.#octets, row * ROW_OCTETS + LABEL_AT, octets, offset, length)
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
      this.#octets = new Uint8Array(rows.buffer)
    }
    return this.#fresh++
  }
}

/** Hash of a child node from its parent's hash and its label's `labelHash`. */
export function childHash(parentHash: number, kind: number, hash: number): number {
  let full = Math.imul(parentHash + kind, 0x9e3779b1) ^ hash
  full = Math.imul(full ^ (full >>> 16), 0x85ebca6b)
  full = Math.imul(full ^ (full >>> 13), 0xc2b2ae35)
  return full ^ (full >>> 16)
}

/** `childHash` of a glob or literal given by its octets. */
export function childHashOf(
  parentHash: number,
  kind: number,
  octets: Uint8Array,
  offset: number,
  length: number,
): number {
  return childHash(parentHash, kind, labelHash(octets, offset, length))
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
