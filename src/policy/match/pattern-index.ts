// PatternIndex finds the patterns that match a name, among many patterns (docs/spec/semantics 1). It uses a tree of DNS labels, read from
// the right. (In this file, every label is a DNS label.) Each pattern has ids, which its owner chooses. `match` changes nothing in the
// index, allocates nothing, and returns each matching (pattern, id) pair exactly once.
//
// Cost of `match`:
//   - one pass over the octets of the name, then one look-up of the literal child for each label;
//   - the same look-ups again below each `*` that is a whole label and has other labels to its left;
//   - nothing for exact, `*.x` and `**.x` patterns that do not match;
//   - for a suffix with globs, at most 8 look-ups, plus 4 for each octet of the next label (1 if all pieces of the globs have 4 octets or
//     more). A filter answers nearly all of these look-ups. Then one comparison for each glob in the buckets that were found. Buckets stay
//     small, except for globs that share all their literal pieces (`a*b` and `a*b*b`);
//   - at worst, 2^k paths through the tree, for patterns with k globs or whole-label stars above shared labels.
// Cost of `add`: one step for each label. `remove` also reads the ids that share the text or the bucket of the pattern.
// Memory: about 150 octets per pattern, 140 KiB for an empty index, and 128 KiB more when there are globs.

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
  /** The list of ids of `*`, the only pattern that has no place in the tree. */
  #every = 0
  #size = 0
  /** One label of a pattern at a time, in wire format. */
  readonly #scratch = new Uint8Array(256)

  /** How many (pattern, id) pairs the index holds. */
  get size(): number {
    return this.#size
  }

  /** Octets of all typed arrays. */
  get octets(): number {
    return this.#trie.octets + this.#chains.octets + this.#buckets.octets
  }

  /** Adds a new pair. Several ids can have the same pattern, and one id can have several patterns. */
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

  /** Removes a pair that was added before. */
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
   * Appends to `out` the ids of all patterns that match the lower-case name at `offset` (wire format), in no order. Returns their number.
   * The root, and a name with an octet outside of [a-z0-9_-], match only `*`.
   */
  match(wire: Uint8Array, offset: number, out: IdList): number {
    const before = out.count
    if (this.#every !== 0) this.#give(this.#every, out)
    const labels = this.#name.read(wire, offset)
    if (labels > 0) this.#walk(ROOT, ROOT_HASH, labels, wire, out)
    return out.count - before
  }

  /** Appends the ids that match from the row `from` on. `labels`: how many labels of the name are left. */
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
      row = trie.find(row, LITERAL, hash, wire, start)
      if (row === 0) return
    }
    const exact = trie.exact(row)
    if (exact !== 0) this.#give(exact, out)
  }

  /** Looks up every anchor of the next label, and continues the walk from each glob under `row` that matches the label. */
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
    if (globMatches(trie.labelBlock(glob), trie.labelOffset(glob), wire, start)) {
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

  /** Returns the list with the ids of a pattern whose labels lead to `row`. */
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

  /** Returns the child for a label of a pattern; 0 if there is none. Writes the label to the scratch. */
  #child(row: number, label: string): number {
    const kind = kindOf(label)
    if (kind === STAR) return this.#trie.starChild(row)
    this.#write(label)
    const hash = childHashOf(this.#trie.hash(row), kind, this.#scratch, 0)
    return this.#trie.find(row, kind, hash, this.#scratch, 0)
  }

  #makeChild(row: number, label: string): number {
    const kind = kindOf(label)
    this.#write(kind === STAR ? '' : label)
    const hash = childHashOf(this.#trie.hash(row), kind, this.#scratch, 0)
    const child = this.#trie.make(row, kind, hash, this.#scratch, 0)
    if (kind === GLOB) this.#buckets.hang(row, child)
    return child
  }

  #write(label: string): void {
    this.#scratch[0] = label.length
    for (let i = 0; i < label.length; i++) this.#scratch[i + 1] = label.charCodeAt(i)
  }

  #without(list: number, id: number, pattern: Pattern): number {
    invariant(
      this.#chains.holds(list, id),
      `the index holds the pattern ${pattern.text} with id ${id}`,
    )
    return this.#chains.remove(list, id)
  }

  /** Removes rows without children and ids, from `from` towards the root. */
  #prune(from: number): void {
    const trie = this.#trie
    let row = from
    while (row !== ROOT && trie.isBare(row)) {
      if (trie.isGlob(row)) this.#buckets.unhang(trie.parent(row), row)
      row = trie.drop(row)
    }
  }
}

/** Returns what stands in front of the labels in the tree: `below` for `**.`, `one` for `*.`, `exact` for nothing. */
function endOf(pattern: Pattern): 'below' | 'one' | 'exact' {
  if (pattern.kind === 'below' || pattern.labels[0] === '**') return 'below'
  return pattern.labels[0] === '*' ? 'one' : 'exact'
}

/** Returns the index of the leftmost label that has a node in the tree. */
function firstLabel(pattern: Pattern): number {
  return pattern.labels[0] === '**' || pattern.labels[0] === '*' ? 1 : 0
}

function kindOf(label: string): typeof LITERAL | typeof STAR | typeof GLOB {
  if (!label.includes('*')) return LITERAL
  return label === '*' ? STAR : GLOB
}

/** True if the label contains the octets at `at` also at an earlier offset. Then their bucket was searched before. */
function occursBefore(wire: Uint8Array, start: number, at: number, size: number): boolean {
  for (let earlier = start; earlier < at; earlier++) {
    let i = 0
    while (i < size && wire[earlier + i] === wire[at + i]) i++
    if (i === size) return true
  }
  return false
}
