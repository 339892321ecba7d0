// The tree of labels under PatternIndex: rows in typed arrays, children found by a hash table. A node
// stands for a run of pattern labels read from the right: `com`, then `example` under it. Its children are
// literal labels, at most one `*` (a whole label), and globs (stars and literals mixed).
//
// Row, 16 ints (64 octets):
//   parent | kind + 4 * length | hash | children | exact | one | below | star child | anchors | 28 octets of label
// A `*` at a pattern's left end needs no row: its ids are `one` of the node behind it.
// Rows lie in pages of 2,048, so that growing copies nothing. Labels of more than 28 octets are kept apart. Row 0 is the root; freed rows are chained through `parent`.
// Children of one parent are told apart by kind, length and octets; hashes alone never decide. A node's hash
// is made from the hashes of its labels and not from row numbers, so that the look-ups of all labels of a
// name can be under way in the processor at once.

import { labelHash } from './name-labels.ts'
import { placeOf, RowTable } from '../../core/tables/row-table.ts'

export const LITERAL = 0
export const STAR = 1
export const GLOB = 2

export const ROOT = 0
export const ROOT_HASH = 0

const ROW_INTS = 16
// Where a row's ints are, counted from `start(row)` in its page.
const PARENT = 0
const SHAPE = 1
const HASH = 2
export const CHILDREN = 3
const EXACT = 4
export const ONE = 5
export const BELOW = 6
export const STAR_CHILD = 7
export const ANCHORS = 8
const ROW_OCTETS = 64
const LABEL_AT = 36
const LABEL_ROOM = 28

const KIND_BITS = 2
const PAGE_BITS = 11
const PAGE_ROWS = 1 << PAGE_BITS

export class LabelTrie {
  readonly #pages: Int32Array[] = []
  /** The same memory as `#pages`. */
  readonly #octetPages: Uint8Array[] = []
  #fresh = 1
  #free = 0
  readonly #table = new RowTable()
  readonly #longLabels = new Map<number, Uint8Array>()

  constructor() {
    this.#addPage()
  }

  /** Octets held in rows and tables. */
  get octets(): number {
    return this.#pages.reduce((sum, page) => sum + page.byteLength, this.#table.octets)
  }

  /** The page that a row is in; its ints are there from `start(row)` on. */
  page(row: number): Int32Array {
    return this.#pages[row >> PAGE_BITS]!
  }

  start(row: number): number {
    return (row & (PAGE_ROWS - 1)) * ROW_INTS
  }

  parent(row: number): number {
    return this.#get(row, PARENT)
  }

  isGlob(row: number): boolean {
    return (this.#get(row, SHAPE) & ((1 << KIND_BITS) - 1)) === GLOB
  }

  hash(row: number): number {
    return this.#get(row, HASH)
  }

  /** How many children of all kinds. */
  children(row: number): number {
    return this.#get(row, CHILDREN)
  }

  /** List (IdChains) of ids whose pattern ends here. */
  exact(row: number): number {
    return this.#get(row, EXACT)
  }

  setExact(row: number, list: number): void {
    this.#set(row, EXACT, list)
  }

  /** List of ids whose pattern is `*.` and then this node. */
  one(row: number): number {
    return this.#get(row, ONE)
  }

  setOne(row: number, list: number): void {
    this.#set(row, ONE, list)
  }

  /** List of ids whose pattern is `**.` and then this node. */
  below(row: number): number {
    return this.#get(row, BELOW)
  }

  setBelow(row: number, list: number): void {
    this.#set(row, BELOW, list)
  }

  /** The child for a whole `*` label with others before it, 0 if there is none. */
  starChild(row: number): number {
    return this.#get(row, STAR_CHILD)
  }

  /** A bit for each kind of anchor that globs under this node have buckets by (GlobBuckets). */
  anchors(row: number): number {
    return this.#get(row, ANCHORS)
  }

  setAnchors(row: number, bits: number): void {
    this.#set(row, ANCHORS, bits)
  }

  /** A row's label is `labelLength` octets of `labelBlock` from `labelOffset` on; valid until the next `make`. */
  labelBlock(row: number): Uint8Array {
    return this.#longLabels.get(row) ?? this.#octetPages[row >> PAGE_BITS]!
  }

  labelOffset(row: number): number {
    return this.labelLength(row) > LABEL_ROOM ? 0 : labelStart(row)
  }

  labelLength(row: number): number {
    return this.#get(row, SHAPE) >> KIND_BITS
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
      const page = this.page(row)
      const start = this.start(row)
      if (page[start + PARENT] !== parent) continue
      if (page[start + SHAPE] !== kind + (length << KIND_BITS)) continue
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
    this.page(row).fill(0, this.start(row), this.start(row) + ROW_INTS)
    this.#set(row, PARENT, parent)
    this.#set(row, SHAPE, kind + (length << KIND_BITS))
    this.#set(row, HASH, hash)
    if (length > LABEL_ROOM) this.#longLabels.set(row, octets.slice(offset, offset + length))
    else this.#writeLabel(row, octets, offset, length)
    this.#set(parent, CHILDREN, this.children(parent) + 1)
    if (kind === STAR) this.#set(parent, STAR_CHILD, row)
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
    const kind = this.#get(row, SHAPE) & ((1 << KIND_BITS) - 1)
    this.#set(parent, CHILDREN, this.children(parent) - 1)
    if (kind === STAR) this.#set(parent, STAR_CHILD, 0)
    else this.#table.remove(this.hash(row), row)
    this.#longLabels.delete(row)
    this.#set(row, PARENT, this.#free)
    this.#free = row
    return parent
  }

  #hasLabel(row: number, octets: Uint8Array, offset: number, length: number): boolean {
    if (length > LABEL_ROOM) return same(this.labelBlock(row), 0, octets, offset, length)
    return same(this.#octetPages[row >> PAGE_BITS]!, labelStart(row), octets, offset, length)
  }

  #writeLabel(row: number, octets: Uint8Array, offset: number, length: number): void {
    const page = this.#octetPages[row >> PAGE_BITS]!
    const start = labelStart(row)
    for (let i = 0; i < length; i++) page[start + i] = octets[offset + i]!
  }

  #takeRow(): number {
    const row = this.#free
    if (row !== 0) {
      this.#free = this.parent(row)
      return row
    }
    if (this.#fresh >> PAGE_BITS === this.#pages.length) this.#addPage()
    return this.#fresh++
  }

  #addPage(): void {
    const page = new Int32Array(PAGE_ROWS * ROW_INTS)
    this.#pages.push(page)
    this.#octetPages.push(new Uint8Array(page.buffer))
  }

  #get(row: number, field: number): number {
    return this.page(row)[this.start(row) + field]!
  }

  #set(row: number, field: number, value: number): void {
    this.page(row)[this.start(row) + field] = value
  }
}

/** Where a row's label is in its page of octets. */
function labelStart(row: number): number {
  return (row & (PAGE_ROWS - 1)) * ROW_OCTETS + LABEL_AT
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
