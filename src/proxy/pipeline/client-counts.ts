// How many queries each client address has in flight, for the per-client bound. A hash table in typed
// arrays: an entry exists while its count is above zero, so there are never more entries than queries in
// flight. Add and remove are O(1).

import { widthOf, type Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'

const NONE = -1

export class ClientCounts {
  readonly #octets: Uint8Array
  readonly #families: Uint8Array
  readonly #counts: Int32Array
  /** Next entry of the same bucket, or of the free list. */
  readonly #next: Int32Array
  readonly #heads: Int32Array
  readonly #mask: number
  #free = NONE
  /** Entries from here on were never used. */
  #fresh = 0

  constructor(capacity: number) {
    this.#octets = new Uint8Array(capacity * 16)
    this.#families = new Uint8Array(capacity)
    this.#counts = new Int32Array(capacity)
    this.#next = new Int32Array(capacity)
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(capacity, 2)))
    this.#heads = new Int32Array(buckets).fill(NONE)
    this.#mask = buckets - 1
  }

  /** Counts one more for the client; its entry, or -1 (nothing counted) when it's at `limit`. */
  add(family: Family, octets: Uint8Array, offset: number, limit: number): number {
    const bucket = this.#bucket(family, octets, offset)
    let entry = this.#heads[bucket]!
    while (entry !== NONE && !this.#is(entry, family, octets, offset)) entry = this.#next[entry]!
    if (entry === NONE && limit <= 0) return NONE
    if (entry === NONE) entry = this.#insert(bucket, family, octets, offset)
    if (this.#counts[entry]! >= limit) return NONE
    this.#counts[entry]!++
    return entry
  }

  /** How many the client has in flight. */
  countOf(family: Family, octets: Uint8Array, offset: number): number {
    let entry = this.#heads[this.#bucket(family, octets, offset)]!
    while (entry !== NONE && !this.#is(entry, family, octets, offset)) entry = this.#next[entry]!
    return entry === NONE ? 0 : this.#counts[entry]!
  }

  /** Counts one less for the client of an entry that `add` gave. */
  remove(entry: number): void {
    if (--this.#counts[entry]! > 0) return
    const family: Family = this.#families[entry] === 4 ? 4 : 6
    const bucket = this.#bucket(family, this.#octets, entry * 16)
    let at = this.#heads[bucket]!
    if (at === entry) {
      this.#heads[bucket] = this.#next[entry]!
    } else {
      while (this.#next[at] !== entry) at = this.#next[at]!
      this.#next[at] = this.#next[entry]!
    }
    this.#next[entry] = this.#free
    this.#free = entry
  }

  #bucket(family: Family, octets: Uint8Array, offset: number): number {
    return hashOctets(octets, offset, widthOf(family) >> 3) & this.#mask
  }

  #is(entry: number, family: Family, octets: Uint8Array, offset: number): boolean {
    if (this.#families[entry] !== family) return false
    for (let i = 0; i < widthOf(family) >> 3; i++) {
      if (this.#octets[entry * 16 + i] !== octets[offset + i]) return false
    }
    return true
  }

  #insert(bucket: number, family: Family, octets: Uint8Array, offset: number): number {
    const entry = this.#free === NONE ? this.#fresh++ : this.#free
    if (entry === this.#free) this.#free = this.#next[entry]!
    this.#families[entry] = family
    for (let i = 0; i < 16; i++) this.#octets[entry * 16 + i] = octets[offset + i]!
    this.#counts[entry] = 0
    this.#next[entry] = this.#heads[bucket]!
    this.#heads[bucket] = entry
    return entry
  }
}
