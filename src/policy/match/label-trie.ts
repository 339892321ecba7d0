// LabelTrie is the tree of DNS labels in PatternIndex. (In this file, every label is a DNS label.) A node stands for the labels of a
// pattern, read from the right: `com`, then `example` under `com`. The children of a node are literal labels, at most one `*` (a whole
// label), and globs (literals and stars in one label). A hash table finds the children. Nodes are rows in typed arrays.
//
// A row has 16 ints (64 octets):
//   parent | kind + 4 * length | hash | children | exact | one | below | star child | anchors | label in 28 octets
//
// A `*` at the left end of a pattern needs no row. Its ids are in the list `one` of the node to its right. Rows are in pages of 2,048 rows,
// so that growth copies nothing. A label is in wire format, with its length in front (RFC 1035 3.1). Labels of more than 27 octets are kept
// in a separate map. Row 0 is the root. Freed rows are chained through `parent`.
//
// Children of one parent differ in kind, length or octets. A look-up compares all three, because different labels can have equal hashes.
// The hash of a node is made of the hashes of its labels and not of row numbers. So the processor can work on the look-ups of all labels of
// a name at the same time.

import { labelHash } from './name-labels.ts'
import { placeOf, RowTable } from '../../core/tables/row-table.ts'

export const LITERAL = 0
export const STAR = 1
export const GLOB = 2

export const ROOT = 0
export const ROOT_HASH = 0

const ROW_INTS = 16
// The offsets of a row's ints, counted from `start(row)` in its page.
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
/** How many octets of a label fit into a row, after the length octet. */
const LABEL_ROOM = 27

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

  /** Octets of rows and tables. */
  get octets(): number {
    return this.#pages.reduce((sum, page) => sum + page.byteLength, this.#table.octets)
  }

  /** Returns the page of a row. The ints of the row begin at `start(row)`. */
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

  /** Returns the number of children of all kinds. */
  children(row: number): number {
    return this.#get(row, CHILDREN)
  }

  /** Returns the list (IdChains) of ids whose pattern ends at this node. */
  exact(row: number): number {
    return this.#get(row, EXACT)
  }

  setExact(row: number, list: number): void {
    this.#set(row, EXACT, list)
  }

  /** Returns the list of ids whose pattern is `*.` and then this node. */
  one(row: number): number {
    return this.#get(row, ONE)
  }

  setOne(row: number, list: number): void {
    this.#set(row, ONE, list)
  }

  /** Returns the list of ids whose pattern is `**.` and then this node. */
  below(row: number): number {
    return this.#get(row, BELOW)
  }

  setBelow(row: number, list: number): void {
    this.#set(row, BELOW, list)
  }

  /** Returns the child for a whole `*` label with other labels to its left; 0 if there is none. */
  starChild(row: number): number {
    return this.#get(row, STAR_CHILD)
  }

  /** Returns one bit for each kind of anchor that has buckets under this node (GlobBuckets). */
  anchors(row: number): number {
    return this.#get(row, ANCHORS)
  }

  setAnchors(row: number, bits: number): void {
    this.#set(row, ANCHORS, bits)
  }

  /** Returns the octets in which a row's label begins at `labelOffset`. Valid until the next `make`. */
  labelBlock(row: number): Uint8Array {
    return this.#longLabels.get(row) ?? this.#octetPages[row >> PAGE_BITS]!
  }

  labelOffset(row: number): number {
    return this.labelLength(row) > LABEL_ROOM ? 0 : labelStart(row)
  }

  labelLength(row: number): number {
    return this.#get(row, SHAPE) >> KIND_BITS
  }

  /** Returns the child of a kind with the label that begins at `at`; 0 if there is none. `hash` is the `childHash` of the child. */
  find(parent: number, kind: number, hash: number, octets: Uint8Array, at: number): number {
    const shape = kind + (octets[at]! << KIND_BITS)
    const part = this.#table.partOf(hash)
    const mask = part.length - 1
    for (let place = placeOf(hash, part); ; place = (place + 2) & mask) {
      const row = part[place + 1]!
      if (row === 0) return 0
      if (part[place] !== hash) continue
      const page = this.page(row)
      const start = this.start(row)
      if (page[start + PARENT] !== parent) continue
      if (page[start + SHAPE] !== shape) continue
      if (this.#hasLabel(row, octets, at)) return row
    }
  }

  /** Makes a child that does not exist yet. The label of a star child is empty. Returns its row. */
  make(parent: number, kind: number, hash: number, octets: Uint8Array, at: number): number {
    const length = octets[at]!
    const row = this.#takeRow()
    this.page(row).fill(0, this.start(row), this.start(row) + ROW_INTS)
    this.#set(row, PARENT, parent)
    this.#set(row, SHAPE, kind + (length << KIND_BITS))
    this.#set(row, HASH, hash)
    if (length > LABEL_ROOM) this.#longLabels.set(row, octets.slice(at, at + 1 + length))
    else this.#writeLabel(row, octets, at)
    this.#set(parent, CHILDREN, this.children(parent) + 1)
    if (kind === STAR) this.#set(parent, STAR_CHILD, row)
    else this.#table.insert(hash, row)
    return row
  }

  /** True if a node has no children and no ids. */
  isBare(row: number): boolean {
    return (
      this.children(row) === 0 &&
      this.exact(row) === 0 &&
      this.one(row) === 0 &&
      this.below(row) === 0
    )
  }

  /** Removes a bare row. Returns its parent. */
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

  #hasLabel(row: number, octets: Uint8Array, at: number): boolean {
    if (octets[at]! > LABEL_ROOM) return sameLabel(this.labelBlock(row), 0, octets, at)
    return sameLabel(this.#octetPages[row >> PAGE_BITS]!, labelStart(row), octets, at)
  }

  #writeLabel(row: number, octets: Uint8Array, at: number): void {
    const page = this.#octetPages[row >> PAGE_BITS]!
    const start = labelStart(row)
    for (let i = 0; i <= octets[at]!; i++) page[start + i] = octets[at + i]!
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

/** Returns the offset of a row's label in its page of octets. */
function labelStart(row: number): number {
  return (row & (PAGE_ROWS - 1)) * ROW_OCTETS + LABEL_AT
}

/** Returns the hash of a child node. It is made of the parent's hash, the kind, and the `labelHash` of the label. */
export function childHash(parentHash: number, kind: number, hash: number): number {
  let full = Math.imul(parentHash + kind, 0x9e3779b1) ^ hash
  full = Math.imul(full ^ (full >>> 16), 0x85ebca6b)
  full = Math.imul(full ^ (full >>> 13), 0xc2b2ae35)
  return full ^ (full >>> 16)
}

/** Returns the `childHash` of a label in wire format. */
export function childHashOf(
  parentHash: number,
  kind: number,
  octets: Uint8Array,
  at: number,
): number {
  return childHash(parentHash, kind, labelHash(octets, at + 1, octets[at]!))
}

function sameLabel(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): boolean {
  const length = b[bAt]!
  for (let i = 1; i <= length; i++) if (a[aAt + i] !== b[bAt + i]) return false
  return true
}
