// Where globs under one suffix are kept so that a label meets few of them. A bucket is a row of the trie,
// found by (parent, side, anchor octets); its chain holds the rows of globs that contain the anchor.
// Written by PatternIndex on add and remove; its match reads the same rows through the trie.
//
// Always: each glob row is in one bucket, that of one of its own anchors, and a parent's anchor bits are
// those of the buckets it has. Which anchor: the one whose bucket is emptiest at that moment, so `svc-*-01`
// to `svc-*-99` spread by their ends although they share their start.

import { invariant } from '../core/invariant.ts'
import { anchorsOf, INNER, type Anchor } from './glob.ts'
import type { IdChains } from './id-chains.ts'
import { BUCKET, type LabelTrie } from './label-trie.ts'
import { labelHash } from './name-labels.ts'

/** Anchors inside of a label cost a look-up per octet: taken only if the others are this many globs fuller. */
const INNER_HANDICAP = 4
/** Anchor bits of a row, rounded up to a factor for keys. */
const ANCHOR_BITS = 32

export class GlobBuckets {
  readonly #trie: LabelTrie
  readonly #chains: IdChains
  /** Buckets by (parent row, anchor bit), to know when a bit goes; has entries only where globs are. */
  readonly #counts = new Map<number, number>()

  constructor(parts: { readonly trie: LabelTrie; readonly chains: IdChains }) {
    this.#trie = parts.trie
    this.#chains = parts.chains
  }

  /** Puts the glob row into the emptiest of its buckets, which is made if it isn't there. */
  hang(parent: number, glob: number): void {
    const trie = this.#trie
    const octets = this.#octetsOf(glob)
    const anchor = this.#emptiest(parent, octets)
    let bucket = this.#find(parent, octets, anchor)
    if (bucket === 0) {
      const { side, offset, length } = anchor
      const hash = labelHash(octets, offset, length)
      bucket = trie.make(parent, BUCKET + side, hash, octets, offset, length)
      this.#count(parent, anchor, 1)
    }
    trie.setExact(bucket, this.#chains.add(trie.exact(bucket), glob))
    trie.countGlobs(bucket, 1)
  }

  /** Takes the glob row out of the bucket that it is in; only the chains themselves tell which. */
  unhang(parent: number, glob: number): void {
    const trie = this.#trie
    const octets = this.#octetsOf(glob)
    for (const anchor of anchorsOf(octets)) {
      const bucket = this.#find(parent, octets, anchor)
      const chain = bucket === 0 ? -1 : this.#chains.remove(trie.exact(bucket), glob)
      if (chain < 0) continue
      trie.setExact(bucket, chain)
      trie.countGlobs(bucket, -1)
      if (chain === 0) {
        trie.drop(bucket)
        this.#count(parent, anchor, -1)
      }
      return
    }
    invariant(false, 'a glob is in one of its buckets')
  }

  /** The anchor whose bucket holds the fewest globs; of equals the longer, then the first. */
  #emptiest(parent: number, octets: Uint8Array): Anchor {
    let best: Anchor | undefined
    let bestLoad = Infinity
    for (const anchor of anchorsOf(octets)) {
      const bucket = this.#find(parent, octets, anchor)
      const globs = bucket === 0 ? 0 : this.#trie.children(bucket)
      const load = globs + (anchor.side === INNER ? INNER_HANDICAP : 0)
      if (load < bestLoad || (load === bestLoad && anchor.length > (best?.length ?? 0))) {
        best = anchor
        bestLoad = load
      }
    }
    invariant(best !== undefined, 'a glob has a literal piece')
    return best
  }

  #find(parent: number, octets: Uint8Array, anchor: Anchor): number {
    const { side, offset, length } = anchor
    const hash = labelHash(octets, offset, length)
    return this.#trie.find(parent, BUCKET + side, hash, octets, offset, length)
  }

  #count(parent: number, anchor: Anchor, by: 1 | -1): void {
    const bit = anchor.side * 8 + anchor.step
    const key = parent * ANCHOR_BITS + bit
    const count = (this.#counts.get(key) ?? 0) + by
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
    const bits = this.#trie.anchors(parent)
    this.#trie.setAnchors(parent, count === 0 ? bits & ~(1 << bit) : bits | (1 << bit))
  }

  #octetsOf(row: number): Uint8Array {
    const offset = this.#trie.labelOffset(row)
    return this.#trie.labelBlock(row).slice(offset, offset + this.#trie.labelLength(row))
  }
}
