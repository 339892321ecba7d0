// Many patterns against one name (docs/spec/semantics 1), by a tree of labels read from the right. The owner of the
// ids (selectors, DNS rules) writes it; `match` only reads and allocates nothing.
//
// Always: `match` gives each (pattern, id) pair that was added, not removed, and matches, exactly once.
// Cost of a match: one pass over the name's octets, then for each label one look-up of the literal child, and
// the same again below each label-wide `*` that has other labels before it. Exact, `*.x` and `**.x` patterns
// add to this only if they match. A suffix that has globs inside of labels costs at most 8 look-ups and 4 an
// octet of the next label (one an octet where no piece of a glob is shorter than 4), nearly all answered by a
// filter, and a comparison for each glob in the buckets found. Buckets stay small unless globs share all
// their literal pieces (`a*b` and `a*b*b`). Patterns with k label-wide stars or globs above shared labels can
// make 2^k ways through the tree at worst.
// Cost of add and remove: the pattern's labels and, to remove, the ids that share its text or its bucket.
// Memory: about 150 octets a pattern, 140 KiB when empty, 128 KiB more once there are globs.

import { invariant } from '../../core/invariant.ts'
import { GlobBuckets, globMatches, INNER, packOctets, PREFIX, SUFFIX } from './globs.ts'
import { IdChains } from '../../core/tables/id-chains.ts'
import type { IdList } from '../../core/tables/id-list.ts'
import {
  ANCHORS,
  BELOW,
  childHash,
  childHashOf,
  CHILDREN,
  GLOB,
  LabelTrie,
  LITERAL,
  ONE,
  ROOT,
  ROOT_HASH,
  STAR,
  STAR_CHILD,
} from './label-trie.ts'
import { NameLabels } from './name-labels.ts'
import type { Pattern } from './pattern.ts'

export class PatternIndex {
  readonly #trie = new LabelTrie()
  readonly #chains = new IdChains()
  readonly #buckets = new GlobBuckets({ trie: this.#trie, chains: this.#chains })
  readonly #name = new NameLabels()
  /** List of the ids of `*`, the one pattern that isn't about labels. */
  #every = 0
  #size = 0
  /** Octets of one pattern label at a time. */
  readonly #scratch = new Uint8Array(256)

  /** How many (pattern, id) pairs it holds. */
  get size(): number {
    return this.#size
  }

  /** Octets held in typed arrays. */
  get octets(): number {
    return this.#trie.octets + this.#chains.octets + this.#buckets.octets
  }

  /** Adds a pair that isn't there yet. Several ids may have the same pattern, and one id several. */
  add(pattern: Pattern, id: number): void {
    this.#size++
    if (pattern.kind === 'every') {
      this.#every = this.#chains.add(this.#every, id)
      return
    }
    let row = ROOT
    for (let i = pattern.labels.length - 1; i >= firstLabel(pattern); i--) {
      const label = pattern.labels[i]!
      const child = this.#child(row, label)
      row = child === 0 ? this.#makeChild(row, label) : child
    }
    this.#setIds(row, pattern, this.#chains.add(this.#ids(row, pattern), id))
  }

  /** Removes a pair that `add` was given. */
  remove(pattern: Pattern, id: number): void {
    if (pattern.kind === 'every') {
      this.#every = this.#without(this.#every, id, pattern)
      this.#size--
      return
    }
    let row = ROOT
    for (let i = pattern.labels.length - 1; i >= firstLabel(pattern); i--) {
      row = this.#child(row, pattern.labels[i]!)
      invariant(row !== ROOT, `the index holds the pattern ${pattern.text}`)
    }
    this.#setIds(row, pattern, this.#without(this.#ids(row, pattern), id, pattern))
    this.#prune(row)
    this.#size--
  }

  /**
   * Appends to `out`, in no order, the ids of all patterns that match the name at `offset` (wire form,
   * lower case); returns how many. A name with an octet outside of [a-z0-9_-], and the root, match only `*`.
   */
  match(wire: Uint8Array, offset: number, out: IdList): number {
    const before = out.count
    if (this.#every !== 0) this.#give(this.#every, out)
    const labels = this.#name.read(wire, offset)
    if (labels > 0) this.#walk(ROOT, ROOT_HASH, labels, wire, out)
    return out.count - before
  }

  /** Gives what matches from `row` on, with `left` labels of the name not yet used. */
  #walk(from: number, fromHash: number, labels: number, wire: Uint8Array, out: IdList): void {
    const trie = this.#trie
    const { starts, hashes } = this.#name
    let row = from
    let hash = fromHash
    for (let left = labels; left > 0; left--) {
      const page = trie.page(row)
      const at = trie.start(row)
      const below = page[at + BELOW]!
      if (below !== 0) this.#give(below, out)
      const one = left === 1 ? page[at + ONE]! : 0
      if (one !== 0) this.#give(one, out)
      if (page[at + CHILDREN] === 0) return
      const star = page[at + STAR_CHILD]!
      if (star !== 0) this.#walk(star, trie.hash(star), left - 1, wire, out)
      if (page[at + ANCHORS] !== 0) this.#walkGlobs(row, left, wire, out)
      const start = starts[left - 1]!
      hash = childHash(hash, LITERAL, hashes[left - 1]!)
      row = trie.find(row, LITERAL, hash, wire, start + 1, wire[start]!)
      if (row === 0) return
    }
    const exact = trie.exact(row)
    if (exact !== 0) this.#give(exact, out)
  }

  /** Goes on from each glob under `row` that matches the next label: looks every anchor of the label up. */
  #walkGlobs(row: number, left: number, wire: Uint8Array, out: IdList): void {
    const start = this.#name.starts[left - 1]! + 1
    const length = wire[start - 1]!
    for (let bits = this.#trie.anchors(row); bits !== 0; bits &= bits - 1) {
      const kind = 31 - Math.clz32(bits & -bits)
      const side = kind >> 2
      const size = (kind & 3) + 1
      if (size > length) continue
      const last = start + (side === PREFIX ? 0 : length - size)
      let at = side === SUFFIX ? last : start
      const mask = -1 >>> (32 - 8 * size)
      let anchor = packOctets(wire, at, size - 1)
      for (; at <= last; at++) {
        anchor = ((anchor << 8) | wire[at + size - 1]!) & mask
        const globs = this.#buckets.globs(row, kind, anchor)
        if (globs === 0 || (side === INNER && occursBefore(wire, start, at, size))) continue
        this.#walkBucket(globs, left, wire, out)
      }
    }
  }

  #walkBucket(globs: number, left: number, wire: Uint8Array, out: IdList): void {
    if (globs > 0) this.#walkGlob(globs - 1, left, wire, out)
    for (let link = globs < 0 ? -globs : 0; link !== 0; link = this.#chains.next(link)) {
      this.#walkGlob(this.#chains.id(link), left, wire, out)
    }
  }

  #walkGlob(glob: number, left: number, wire: Uint8Array, out: IdList): void {
    const trie = this.#trie
    const start = this.#name.starts[left - 1]!
    const octets = trie.labelBlock(glob)
    const offset = trie.labelOffset(glob)
    if (globMatches(octets, offset, trie.labelLength(glob), wire, start + 1, wire[start]!)) {
      this.#walk(glob, trie.hash(glob), left - 1, wire, out)
    }
  }

  /** Appends the ids of a list. */
  #give(list: number, out: IdList): void {
    if (list > 0) out.push(list - 1)
    for (let link = list < 0 ? -list : 0; link !== 0; link = this.#chains.next(link)) {
      out.push(this.#chains.id(link))
    }
  }

  /** The list where a pattern's ids are once its labels have led to `row`. */
  #ids(row: number, pattern: Pattern): number {
    switch (endOf(pattern)) {
      case 'below':
        return this.#trie.below(row)
      case 'one':
        return this.#trie.one(row)
      case 'exact':
        return this.#trie.exact(row)
    }
  }

  #setIds(row: number, pattern: Pattern, list: number): void {
    switch (endOf(pattern)) {
      case 'below':
        return this.#trie.setBelow(row, list)
      case 'one':
        return this.#trie.setOne(row, list)
      case 'exact':
        return this.#trie.setExact(row, list)
    }
  }

  /** The child for a pattern label, or 0. Leaves the label's octets in the scratch. */
  #child(row: number, label: string): number {
    const kind = kindOf(label)
    if (kind === STAR) return this.#trie.starChild(row)
    const length = this.#write(label)
    const hash = childHashOf(this.#trie.hash(row), kind, this.#scratch, 0, length)
    return this.#trie.find(row, kind, hash, this.#scratch, 0, length)
  }

  #makeChild(row: number, label: string): number {
    const kind = kindOf(label)
    const length = kind === STAR ? 0 : this.#write(label)
    const hash = childHashOf(this.#trie.hash(row), kind, this.#scratch, 0, length)
    const child = this.#trie.make(row, kind, hash, this.#scratch, 0, length)
    if (kind === GLOB) this.#buckets.hang(row, child)
    return child
  }

  #write(label: string): number {
    for (let i = 0; i < label.length; i++) this.#scratch[i] = label.charCodeAt(i)
    return label.length
  }

  #without(list: number, id: number, pattern: Pattern): number {
    invariant(
      this.#chains.holds(list, id),
      `the index holds the pattern ${pattern.text} with id ${id}`,
    )
    return this.#chains.remove(list, id)
  }

  /** Drops rows that lead to nothing any more, from `row` towards the root. */
  #prune(from: number): void {
    const trie = this.#trie
    let row = from
    while (row !== ROOT && trie.isBare(row)) {
      if (trie.isGlob(row)) this.#buckets.unhang(trie.parent(row), row)
      row = trie.drop(row)
    }
  }
}

/** What stands before the labels that have a place in the tree: `**.`, `*.` or nothing. */
function endOf(pattern: Pattern): 'below' | 'one' | 'exact' {
  if (pattern.kind === 'below' || pattern.labels[0] === '**') return 'below'
  return pattern.labels[0] === '*' ? 'one' : 'exact'
}

/** Index of the leftmost label that has a place in the tree. */
function firstLabel(pattern: Pattern): number {
  return pattern.labels[0] === '**' || pattern.labels[0] === '*' ? 1 : 0
}

function kindOf(label: string): typeof LITERAL | typeof STAR | typeof GLOB {
  if (!label.includes('*')) return LITERAL
  return label === '*' ? STAR : GLOB
}

/** Whether the octets at `at` stand in the label earlier already, so that their bucket was seen. */
function occursBefore(wire: Uint8Array, start: number, at: number, size: number): boolean {
  for (let earlier = start; earlier < at; earlier++) {
    let i = 0
    while (i < size && wire[earlier + i] === wire[at + i]) i++
    if (i === size) return true
  }
  return false
}
