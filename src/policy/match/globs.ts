// A glob is a pattern for one DNS label: `api-*`, `*cdn*`, `eu-*-1`. (In this file, every label is a DNS label.) `globMatches` compares a
// glob with a label. GlobBuckets finds, among many globs, the few that a label can match. PatternIndex owns the GlobBuckets.
//
// An anchor is a literal piece that every match of the glob contains: at its start, at its end, or inside. A bucket has a node of the trie,
// a kind of anchor, and the octets of the anchor. It lists globs under this node that have this anchor. Each glob is in exactly one bucket,
// that of one of its anchors. A new glob uses the anchor whose bucket has the fewest globs. So `svc-*-01` to `svc-*-99` are spread over
// buckets by their ends. The anchor bits of a node say which kinds of anchors have buckets under the node.
//
// The record of a bucket has 5 ints: node | kind of anchor | anchor octets | list of globs (IdChains) | number of globs. Freed records are
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

/** The longest anchor, in octets. It fits into one int. */
export const ANCHOR_OCTETS_MAX = 4

/** A literal piece of 1..4 octets. */
export interface Anchor {
  /** 4 * side + length - 1, from 0 to 11. The length is the number of octets. */
  readonly kind: number
  /** The octets as one int. The first octet has the highest value. */
  readonly octets: number
}

/**
 * Returns true if the label matches the glob, both in wire format. `*` stands for zero or more octets. The caller has checked that all
 * octets are in the class of patterns. After a mismatch the last star takes one octet more. So the cost is at most the product of both
 * lengths, and no stack is needed.
 */
export function globMatches(
  glob: Uint8Array,
  globAt: number,
  label: Uint8Array,
  labelAt: number,
): boolean {
  let g = globAt + 1
  let l = labelAt + 1
  const globEnd = g + glob[globAt]!
  const labelEnd = l + label[labelAt]!
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
 * Returns all anchors of a glob. A literal piece at the start or end of the glob gives an anchor for that side. Every run of 4 octets
 * inside gives an anchor, and so does a shorter piece between two stars. A glob of stars only has none.
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

/** Packs up to 4 octets into one int. The first octet has the highest value. */
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

/** More than the number of kinds of anchors: a factor for keys. */
const KINDS = 16
const FIRST_INNER_KIND = INNER * ANCHOR_OCTETS_MAX
/** An anchor inside a label costs a look-up per octet. So an anchor at a side is preferred if its bucket has up to this many globs more. */
const INNER_HANDICAP = 4

/** The number of counters in the filter (128 KiB). 10,000 buckets set 7 percent of the counters. */
const FILTER_COUNTERS = 1 << 17
const COUNTER_MAX = 255

export class GlobBuckets {
  readonly #trie: LabelTrie
  readonly #chains: IdChains
  readonly #table = new RowTable()
  #records = new Int32Array(FIRST_RECORDS * RECORD_INTS)
  #fresh = 1
  #free = 0
  /** The number of buckets by the low bits of their hash. A counter that reached 255 stays there. 0 means that there is no bucket. */
  #filter: Uint8Array = Uint8Array.of(0)
  /** The number of buckets by (node, kind of anchor). At 0, the anchor bit of the node is cleared. */
  readonly #counts = new Map<number, number>()

  constructor(parts: { readonly trie: LabelTrie; readonly chains: IdChains }) {
    this.#trie = parts.trie
    this.#chains = parts.chains
  }

  /** Octets of records, table and filter. */
  get octets(): number {
    return this.#records.byteLength + this.#table.octets + this.#filter.length
  }

  /** Returns the list (IdChains) of globs under `node` with the anchor; 0 if there are none. The filter finds nearly all of these zeros. */
  globs(node: number, kind: number, anchor: number): number {
    const hash = bucketHash(node, kind, anchor)
    if (this.#filter[hash & (this.#filter.length - 1)] === 0) return 0
    return this.#records[this.#find(hash, node, kind, anchor) * RECORD_INTS + GLOBS]!
  }

  /** Returns how many globs are in the bucket of an anchor. */
  load(node: number, { kind, octets }: Anchor): number {
    const hash = bucketHash(node, kind, octets)
    return this.#records[this.#find(hash, node, kind, octets) * RECORD_INTS + COUNT]!
  }

  /** Adds a glob, whose row is under `node` in the trie, to the bucket with the fewest globs among those of its anchors. */
  hang(node: number, glob: number): void {
    const { kind, octets } = this.#emptiest(node, anchorsOf(this.#labelOf(glob)))
    const hash = bucketHash(node, kind, octets)
    const found = this.#find(hash, node, kind, octets)
    const bucket = found === 0 ? this.#make(hash, node, kind, octets) : found
    const at = bucket * RECORD_INTS
    this.#records[at + GLOBS] = this.#chains.add(this.#records[at + GLOBS]!, glob)
    this.#records[at + COUNT] = this.#records[at + COUNT]! + 1
  }

  /** Removes a glob from its bucket. Searches the lists of all its anchors, because the glob does not know its bucket. */
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

  /** Returns the anchor whose bucket has the fewest globs. Among equals, the first. */
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

  /** Returns the record of a bucket, or 0 if there is no such bucket. Record 0 contains only zeros. */
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
    const offset = this.#trie.labelOffset(row) + 1
    return this.#trie.labelBlock(row).subarray(offset, offset + this.#trie.labelLength(row))
  }
}

function bucketHash(node: number, kind: number, anchor: number): number {
  let hash = Math.imul(Math.imul(node * KINDS + kind, 0x9e3779b1) ^ anchor, 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
