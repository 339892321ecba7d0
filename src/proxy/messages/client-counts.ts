// How many queries each client address has in flight, for the per-client bound. A hash table in typed
// arrays: an entry exists while its count is above zero, so there are never more entries than queries in
// flight. Add and remove are O(1).

import { widthOf, type Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'

export class ClientCounts {
  readonly #octets: Uint8Array
  readonly #families: Uint8Array
  readonly #counts: Int32Array
  /** Entries by hash bucket; the list behind the buckets has the free ones. */
  readonly #entries: LinkedRows
  readonly #mask: number
  readonly #free: number
  /** Entries from here on were never used. */
  #fresh = 0

  constructor(capacity: number) {
    this.#octets = new Uint8Array(capacity * 16)
    this.#families = new Uint8Array(capacity)
    this.#counts = new Int32Array(capacity)
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(capacity, 2)))
    this.#entries = new LinkedRows(capacity, buckets + 1)
    this.#mask = buckets - 1
    this.#free = buckets
  }

  /** Counts one more for the client; its entry, or -1 (nothing counted) when it's at `limit`. */
  add(family: Family, octets: Uint8Array, offset: number, limit: number): number {
    const bucket = this.#bucket(family, octets, offset)
    let entry = this.#find(bucket, family, octets, offset)
    if (entry === NO_ROW && limit <= 0) return NO_ROW
    if (entry === NO_ROW) entry = this.#insert(bucket, family, octets, offset)
    if (this.#counts[entry]! >= limit) return NO_ROW
    this.#counts[entry]!++
    return entry
  }

  /** How many the client has in flight. */
  countOf(family: Family, octets: Uint8Array, offset: number): number {
    const bucket = this.#bucket(family, octets, offset)
    const entry = this.#find(bucket, family, octets, offset)
    return entry === NO_ROW ? 0 : this.#counts[entry]!
  }

  /** Counts one less for the client of an entry that `add` gave. */
  remove(entry: number): void {
    if (--this.#counts[entry]! > 0) return
    const family: Family = this.#families[entry] === 4 ? 4 : 6
    this.#entries.remove(this.#bucket(family, this.#octets, entry * 16), entry)
    this.#entries.addFirst(this.#free, entry)
  }

  #find(bucket: number, family: Family, octets: Uint8Array, offset: number): number {
    let entry = this.#entries.first(bucket)
    while (entry !== NO_ROW && !this.#is(entry, family, octets, offset)) {
      entry = this.#entries.after(entry)
    }
    return entry
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
    let entry = this.#entries.first(this.#free)
    if (entry === NO_ROW) entry = this.#fresh++
    else this.#entries.remove(this.#free, entry)
    this.#families[entry] = family
    for (let i = 0; i < 16; i++) this.#octets[entry * 16 + i] = octets[offset + i]!
    this.#counts[entry] = 0
    this.#entries.addFirst(bucket, entry)
    return entry
  }
}
