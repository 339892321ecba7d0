// Where the globs under one node of the trie are kept so that a label meets few of them. A bucket is found by
// (node, kind of anchor, octets of the anchor) and lists the globs that contain the anchor there. Written by
// PatternIndex on add and remove, read by its match.
//
// Always: each glob is in one bucket, that of one of its own anchors, and a node's anchor bits are those of
// the buckets it has. Which anchor: the one whose bucket is emptiest at that moment, so `svc-*-01` to
// `svc-*-99` spread by their ends although they share their start.
//
// Record of a bucket, 5 ints: node | kind of anchor | anchor octets | list of globs (IdChains) | their count.
// Freed records are chained through the first int.

import { invariant } from '../../core/invariant.ts'
import { ANCHOR_OCTETS_MAX, anchorsOf, INNER, type Anchor } from './glob.ts'
import type { IdChains } from '../../core/tables/id-chains.ts'
import type { LabelTrie } from './label-trie.ts'
import { placeOf, RowTable } from '../../core/tables/row-table.ts'

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
/** Anchors inside of a label cost a look-up per octet: taken only if the others are this many globs fuller. */
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
