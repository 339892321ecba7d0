// Globs of one label (`api-*`, `*cdn*`, `eu-*-1`): the match, and the buckets that lead a label to the few globs that it can
// match among many. An anchor is a literal piece that every match of the glob contains: at its start, at its end, or inside. A
// bucket has a node of the trie, a kind of anchor and its octets, and lists the globs with that anchor there. PatternIndex owns
// the buckets.
//
// Always: each glob is in one bucket, that of one of its own anchors, and a node's anchor bits are those of its buckets. A new
// glob takes the anchor with the emptiest bucket, so that `svc-*-01` to `svc-*-99` spread by their ends.
//
// Record of a bucket, 5 ints: node | kind of anchor | anchor octets | list of globs (IdChains) | their count. Freed records are
// chained through the first int.

import { invariant } from '../../core/invariant.ts'
import type { IdChains } from '../../core/tables/id-chains.ts'
import { placeOf, RowTable } from '../../core/tables/row-table.ts'
import type { LabelTrie } from './label-trie.ts'

const STAR = 0x2a

export const PREFIX = 0
export const SUFFIX = 1
export const INNER = 2
export type Side = typeof PREFIX | typeof SUFFIX | typeof INNER

/** The longest anchor, in octets: it fits into one int. */
export const ANCHOR_OCTETS_MAX = 4

/** A literal piece of 1..4 octets. */
export interface Anchor {
  /** 4 * side + octets - 1; 0..11. */
  readonly kind: number
  /** The octets, the first one highest. */
  readonly octets: number
}

/**
 * Whether the label matches the glob; `*` stands for zero or more octets, which the caller has checked to
 * be in the class. On a mismatch the last star takes one octet more, so the cost is at most the product of
 * both lengths and no stack is needed.
 */
export function globMatches(
  glob: Uint8Array,
  globOffset: number,
  globLength: number,
  label: Uint8Array,
  labelOffset: number,
  labelLength: number,
): boolean {
  const globEnd = globOffset + globLength
  const labelEnd = labelOffset + labelLength
  let g = globOffset
  let l = labelOffset
  let afterStar = -1
  let resume = 0
  while (l < labelEnd) {
    if (g < globEnd && glob[g] === STAR) {
      afterStar = ++g
      resume = l
    } else if (g < globEnd && glob[g] === label[l]) {
      g++
      l++
    } else if (afterStar >= 0) {
      g = afterStar
      l = ++resume
    } else {
      return false
    }
  }
  while (g < globEnd && glob[g] === STAR) g++
  return g === globEnd
}

/**
 * All anchors of a glob: of each literal piece what stands at the label's start or end, and every run of 4
 * octets inside (or the whole piece, if it is shorter and has no side). None if the glob is stars only.
 */
export function anchorsOf(glob: Uint8Array): readonly Anchor[] {
  const anchors: Anchor[] = []
  for (let start = 0; start < glob.length; start++) {
    if (glob[start] === STAR) continue
    let end = start
    while (end < glob.length && glob[end] !== STAR) end++
    const size = Math.min(end - start, ANCHOR_OCTETS_MAX)
    const atStart = start === 0
    const atEnd = end === glob.length
    if (atStart) anchors.push(mkAnchor(PREFIX, glob, start, size))
    if (atEnd) anchors.push(mkAnchor(SUFFIX, glob, end - size, size))
    for (let at = atStart ? start + 1 : start; at + size <= (atEnd ? end - 1 : end); at++) {
      anchors.push(mkAnchor(INNER, glob, at, size))
    }
    start = end
  }
  return anchors
}

function mkAnchor(side: Side, glob: Uint8Array, offset: number, length: number): Anchor {
  return { kind: side * ANCHOR_OCTETS_MAX + length - 1, octets: packOctets(glob, offset, length) }
}

/** Up to 4 octets as one int, the first one highest. */
export function packOctets(octets: Uint8Array, offset: number, length: number): number {
  let packed = 0
  for (let i = offset; i < offset + length; i++) packed = (packed << 8) | octets[i]!
  return packed
}

const RECORD_INTS = 5
const NODE = 0
const KIND = 1
const ANCHOR = 2
const GLOBS = 3
const COUNT = 4
const FIRST_RECORDS = 8

/** Kinds of anchors, rounded up to a factor for keys. */
const KINDS = 16
const FIRST_INNER_KIND = INNER * ANCHOR_OCTETS_MAX
/** An anchor inside a label costs a look-up per octet, so other anchors are preferred up to this many globs more. */
const INNER_HANDICAP = 4

/** Counters of the filter: 128 KiB, of which 10,000 buckets set 7 in 100. */
const FILTER_COUNTERS = 1 << 17
const COUNTER_MAX = 255

export class GlobBuckets {
  readonly #trie: LabelTrie
  readonly #chains: IdChains
  readonly #table = new RowTable()
  #records = new Int32Array(FIRST_RECORDS * RECORD_INTS)
  #fresh = 1
  #free = 0
  /** Buckets by low bits of their hash, counted up to 255 and then for good: 0 says surely that none is there. */
  #filter: Uint8Array = Uint8Array.of(0)
  /** Buckets by (node, kind of anchor), to know when a node's bit goes. */
  readonly #counts = new Map<number, number>()

  constructor(parts: { readonly trie: LabelTrie; readonly chains: IdChains }) {
    this.#trie = parts.trie
    this.#chains = parts.chains
  }

  /** Octets held in records, table and filter. */
  get octets(): number {
    return this.#records.byteLength + this.#table.octets + this.#filter.length
  }

  /** The list of globs under `node` with that anchor, 0 if there are none. Nearly always the filter says so. */
  globs(node: number, kind: number, anchor: number): number {
    const hash = bucketHash(node, kind, anchor)
    if (this.#filter[hash & (this.#filter.length - 1)] === 0) return 0
    return this.#records[this.#find(hash, node, kind, anchor) * RECORD_INTS + GLOBS]!
  }

  /** How many globs are in that bucket. */
  load(node: number, { kind, octets }: Anchor): number {
    const hash = bucketHash(node, kind, octets)
    return this.#records[this.#find(hash, node, kind, octets) * RECORD_INTS + COUNT]!
  }

  /** Puts a glob that the trie has under `node` into the emptiest of its buckets. */
  hang(node: number, glob: number): void {
    const { kind, octets } = this.#emptiest(node, anchorsOf(this.#labelOf(glob)))
    const hash = bucketHash(node, kind, octets)
    const found = this.#find(hash, node, kind, octets)
    const bucket = found === 0 ? this.#make(hash, node, kind, octets) : found
    const at = bucket * RECORD_INTS
    this.#records[at + GLOBS] = this.#chains.add(this.#records[at + GLOBS]!, glob)
    this.#records[at + COUNT] = this.#records[at + COUNT]! + 1
  }

  /** Takes a glob out of the bucket that it is in; only the lists themselves tell which. */
  unhang(node: number, glob: number): void {
    for (const { kind, octets } of anchorsOf(this.#labelOf(glob))) {
      const hash = bucketHash(node, kind, octets)
      const bucket = this.#find(hash, node, kind, octets)
      const at = bucket * RECORD_INTS
      const globs = this.#records[at + GLOBS]!
      if (!this.#chains.holds(globs, glob)) continue
      this.#records[at + GLOBS] = this.#chains.remove(globs, glob)
      this.#records[at + COUNT] = this.#records[at + COUNT]! - 1
      if (this.#records[at + COUNT] === 0) this.#drop(hash, bucket)
      return
    }
    invariant(false, 'a glob is in one of its buckets')
  }

  /** The anchor whose bucket holds the fewest globs; of equals the first. */
  #emptiest(node: number, anchors: readonly Anchor[]): Anchor {
    let best: Anchor | undefined
    let bestLoad = Infinity
    for (const anchor of anchors) {
      const load = this.load(node, anchor) + (anchor.kind < FIRST_INNER_KIND ? 0 : INNER_HANDICAP)
      if (load >= bestLoad) continue
      best = anchor
      bestLoad = load
    }
    invariant(best !== undefined, 'a glob has a literal piece')
    return best
  }

  /** The bucket's record, or 0, which stays all zero. */
  #find(hash: number, node: number, kind: number, anchor: number): number {
    const part = this.#table.partOf(hash)
    const mask = part.length - 1
    const records = this.#records
    for (let place = placeOf(hash, part); ; place = (place + 2) & mask) {
      const bucket = part[place + 1]!
      const at = bucket * RECORD_INTS
      if (bucket === 0) return 0
      if (part[place] !== hash || records[at + NODE] !== node) continue
      if (records[at + KIND] === kind && records[at + ANCHOR] === anchor) return bucket
    }
  }

  #make(hash: number, node: number, kind: number, anchor: number): number {
    const bucket = this.#takeRecord()
    this.#records.set([node, kind, anchor, 0, 0], bucket * RECORD_INTS)
    this.#table.insert(hash, bucket)
    this.#count(node, kind, 1)
    this.#countHash(hash, 1)
    return bucket
  }

  #drop(hash: number, bucket: number): void {
    const at = bucket * RECORD_INTS
    this.#count(this.#records[at + NODE]!, this.#records[at + KIND]!, -1)
    this.#countHash(hash, -1)
    this.#table.remove(hash, bucket)
    this.#records[at] = this.#free
    this.#free = bucket
  }

  #takeRecord(): number {
    const bucket = this.#free
    if (bucket !== 0) {
      this.#free = this.#records[bucket * RECORD_INTS]!
      return bucket
    }
    if (this.#fresh * RECORD_INTS === this.#records.length) {
      const records = new Int32Array(this.#records.length * 2)
      records.set(this.#records)
      this.#records = records
    }
    return this.#fresh++
  }

  #count(node: number, kind: number, by: 1 | -1): void {
    const key = node * KINDS + kind
    const count = (this.#counts.get(key) ?? 0) + by
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
    const bits = this.#trie.anchors(node)
    this.#trie.setAnchors(node, count === 0 ? bits & ~(1 << kind) : bits | (1 << kind))
  }

  #countHash(hash: number, by: 1 | -1): void {
    if (this.#filter.length === 1) this.#filter = new Uint8Array(FILTER_COUNTERS)
    const at = hash & (FILTER_COUNTERS - 1)
    const count = this.#filter[at]!
    if (count < COUNTER_MAX) this.#filter[at] = count + by
  }

  #labelOf(row: number): Uint8Array {
    const offset = this.#trie.labelOffset(row)
    return this.#trie.labelBlock(row).subarray(offset, offset + this.#trie.labelLength(row))
  }
}

function bucketHash(node: number, kind: number, anchor: number): number {
  let hash = Math.imul(Math.imul(node * KINDS + kind, 0x9e3779b1) ^ anchor, 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
