// ClientCounts counts the queries of each client address, for the bound per client. It is a hash table in typed arrays. An
// address is in the table only while its count is above zero, so the table never has more addresses than queries.
// `add` and `remove` are O(1).

import { widthOf, type Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'

export class ClientCounts {
  readonly #octets: Uint8Array
  readonly #families: Uint8Array
  readonly #counts: Int32Array
  /** One list of rows per hash bucket. One more list, with the number `#free`, has the free rows. */
  readonly #entries: LinkedRows
  readonly #mask: number
  readonly #free: number
  /** Rows from this number on were never used. */
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

  /** Adds one to the client's count, and returns the client's row. If the count is at `limit`, changes nothing and returns -1. */
  add(family: Family, octets: Uint8Array, offset: number, limit: number): number {
    const bucket = this.#bucket(family, octets, offset)
    let entry = this.#find(bucket, family, octets, offset)
    if (entry === NO_ROW && limit <= 0) return NO_ROW
    if (entry === NO_ROW) entry = this.#insert(bucket, family, octets, offset)
    if (this.#counts[entry]! >= limit) return NO_ROW
    this.#counts[entry]!++
    return entry
  }

  /** Returns the client's count. */
  countOf(family: Family, octets: Uint8Array, offset: number): number {
    const bucket = this.#bucket(family, octets, offset)
    const entry = this.#find(bucket, family, octets, offset)
    return entry === NO_ROW ? 0 : this.#counts[entry]!
  }

  /** Subtracts one from the count of a client. `entry` is the row that `add` returned. */
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
