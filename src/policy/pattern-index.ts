// Many patterns against one name (SEMANTICS 1), by a tree of labels read from the right. Written by whoever
// owns the ids (selectors, DNS rules); `match` only reads and allocates nothing.
//
// Always: `match` gives each (pattern, id) pair that was added, not removed, and matches, exactly once.
// Cost of a match: one pass over the name's octets, then per label one table look-up for each way that
// patterns lead to it: the literal labels, and each `*` label beside them. Exact, `*.x` and `**.x` patterns
// add to this only if they match. Globs inside a label cost at most 16 look-ups and 8 a label octet for each
// suffix that has any, then a comparison for each glob in the buckets found. Every literal piece of a glob
// could be its bucket; it goes to the emptiest, so only globs all of whose pieces are shared crowd one.
// Patterns with k label-wide stars or globs above shared labels can lead to 2^k ways at worst.
// Cost of add and remove: the pattern's labels and, to remove, the ids that share its text or its bucket.
// Memory: about 100 octets a pattern; an empty index holds some 20 KB, so have one for many owners.

import { invariant } from '../core/invariant.ts'
import { ANCHOR_LENGTHS, globMatches, INNER, PREFIX, SUFFIX } from './glob.ts'
import { GlobBuckets } from './glob-buckets.ts'
import { IdChains } from './id-chains.ts'
import type { IdList } from './id-list.ts'
import { BUCKET, GLOB, LabelTrie, LITERAL, ROOT, STAR } from './label-trie.ts'
import { labelHash, NameLabels } from './name-labels.ts'
import type { Pattern } from './pattern.ts'

export class PatternIndex {
  readonly #trie = new LabelTrie()
  readonly #chains = new IdChains()
  readonly #buckets = new GlobBuckets({ trie: this.#trie, chains: this.#chains })
  readonly #name = new NameLabels()
  /** Chain of the ids of `*`, the one pattern that isn't about labels. */
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
    return this.#trie.octets + this.#chains.octets
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
    if (isDeep(pattern)) this.#trie.setBelow(row, this.#chains.add(this.#trie.below(row), id))
    else this.#trie.setExact(row, this.#chains.add(this.#trie.exact(row), id))
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
    const trie = this.#trie
    if (isDeep(pattern)) trie.setBelow(row, this.#without(trie.below(row), id, pattern))
    else trie.setExact(row, this.#without(trie.exact(row), id, pattern))
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
    if (labels > 0) this.#walk(ROOT, labels, wire, out)
    return out.count - before
  }

  /** Gives what matches from `row` on, with `left` labels of the name not yet used. */
  #walk(from: number, labels: number, wire: Uint8Array, out: IdList): void {
    const trie = this.#trie
    const { starts, hashes } = this.#name
    let row = from
    for (let left = labels; left > 0; left--) {
      const below = trie.below(row)
      if (below !== 0) this.#give(below, out)
      if (trie.children(row) === 0) return
      const star = trie.starChild(row)
      if (star !== 0) this.#walk(star, left - 1, wire, out)
      if (trie.anchors(row) !== 0) this.#walkGlobs(row, left, wire, out)
      const start = starts[left - 1]!
      row = trie.find(row, LITERAL, hashes[left - 1]!, wire, start + 1, wire[start]!)
      if (row === 0) return
    }
    const exact = trie.exact(row)
    if (exact !== 0) this.#give(exact, out)
  }

  /** Goes on from each glob under `row` that matches the next label. */
  #walkGlobs(row: number, left: number, wire: Uint8Array, out: IdList): void {
    const start = this.#name.starts[left - 1]! + 1
    const length = wire[start - 1]!
    for (let bits = this.#trie.anchors(row); bits !== 0; bits &= bits - 1) {
      const bit = 31 - Math.clz32(bits & -bits)
      const side = bit >> 3
      const size = ANCHOR_LENGTHS[bit & 7]!
      if (size > length) continue
      const last = side === PREFIX ? start : start + length - size
      for (let at = side === SUFFIX ? last : start; at <= last; at++) {
        const bucket = this.#trie.find(
          row,
          BUCKET + side,
          labelHash(wire, at, size),
          wire,
          at,
          size,
        )
        if (bucket === 0) continue
        if (side === INNER && occursBefore(wire, start, at, size)) continue
        this.#walkBucket(bucket, left, wire, out)
      }
    }
  }

  #walkBucket(bucket: number, left: number, wire: Uint8Array, out: IdList): void {
    const trie = this.#trie
    const start = this.#name.starts[left - 1]!
    for (let link = trie.exact(bucket); link !== 0; link = this.#chains.next(link)) {
      const glob = this.#chains.id(link)
      const octets = trie.labelBlock(glob)
      const offset = trie.labelOffset(glob)
      if (globMatches(octets, offset, trie.labelLength(glob), wire, start + 1, wire[start]!)) {
        this.#walk(glob, left - 1, wire, out)
      }
    }
  }

  #give(first: number, out: IdList): void {
    for (let link = first; link !== 0; link = this.#chains.next(link))
      out.push(this.#chains.id(link))
  }

  /** The child for a pattern label, or 0. Leaves the label's octets in the scratch. */
  #child(row: number, label: string): number {
    const kind = kindOf(label)
    if (kind === STAR) return this.#trie.starChild(row)
    const length = this.#write(label)
    return this.#trie.find(row, kind, labelHash(this.#scratch, 0, length), this.#scratch, 0, length)
  }

  #makeChild(row: number, label: string): number {
    const kind = kindOf(label)
    const length = kind === STAR ? 0 : this.#write(label)
    const hash = labelHash(this.#scratch, 0, length)
    const child = this.#trie.make(row, kind, hash, this.#scratch, 0, length)
    if (kind === GLOB) this.#buckets.hang(row, child)
    return child
  }

  #write(label: string): number {
    for (let i = 0; i < label.length; i++) this.#scratch[i] = label.charCodeAt(i)
    return label.length
  }

  #without(chain: number, id: number, pattern: Pattern): number {
    const rest = this.#chains.remove(chain, id)
    invariant(rest >= 0, `the index holds the pattern ${pattern.text} with id ${id}`)
    return rest
  }

  /** Drops rows that lead to nothing any more, from `row` towards the root. */
  #prune(from: number): void {
    const trie = this.#trie
    let row = from
    while (row !== ROOT && trie.children(row) + trie.exact(row) + trie.below(row) === 0) {
      if (trie.isGlob(row)) this.#buckets.unhang(trie.parent(row), row)
      row = trie.drop(row)
    }
  }
}

/** Whether the pattern stands for names below its labels: `**.` and literals, or `**.` and globs. */
function isDeep(pattern: Pattern): boolean {
  return pattern.kind === 'below' || pattern.labels[0] === '**'
}

/** Where the labels begin that have a place in the tree: `**` has none. */
function firstLabel(pattern: Pattern): number {
  return pattern.labels[0] === '**' ? 1 : 0
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
