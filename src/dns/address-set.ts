// AddressSet holds the addresses that namegate can learn from one answer, each once, with its lowest TTL. An IPv4 address has family 4
// and its octets in the first 4 of 16; the rest is zero. An IPv4-mapped IPv6 address is stored as IPv4 (core/ip.ts). AnswerView fills
// the set, and the learner reads it. The set is reused for the next answer. It never grows, because a message has at most
// ADDRESSES_MAX addresses. Up to 16 addresses are compared one by one; for more, a hash table is used.

import { isMapped, type Family } from '../core/ip.ts'
import { hashOctets } from '../core/tables/keyed-hash.ts'
import { sameOctets } from './wire.ts'

/** The largest number of addresses in a message: hints of one SVCB record have 4 octets each, so fewer than 65,535 / 4. */
export const ADDRESSES_MAX = 16_383
const LINEAR_MAX = 16
/** Size of the hash table: a power of two, so that at most half of the places are in use. */
const SLOTS = 32_768

export class AddressSet {
  count = 0
  /** 4 or 6. */
  readonly families = new Uint8Array(ADDRESSES_MAX)
  /** 16 octets per address. */
  readonly octets = new Uint8Array(ADDRESSES_MAX * 16)
  /** The TTL in seconds, as in the message: 0..2^31-1. The bounds of the configuration are not applied. */
  readonly ttls = new Uint32Array(ADDRESSES_MAX)
  /** Octets from the start of the message to the first record with the address. */
  readonly recordOffsets = new Uint16Array(ADDRESSES_MAX)
  /** The number of the name in the chain that owns the address. If several names own it, the last one. */
  readonly owners = new Uint8Array(ADDRESSES_MAX)
  readonly #slots = new Uint16Array(SLOTS)
  /** True if the hash table has the addresses of this answer. The 17th address fills it. */
  #tabled = false
  /** Values of the record that `from` was called for. */
  #recordOffset = 0
  #ttl = 0
  #owner = 0

  clear(): void {
    this.count = 0
    this.#tabled = false
  }

  /** Begins a record: the next addresses are in it. `owner`: the number of a name in the chain; 0: the question. */
  from(recordOffset: number, ttl: number, owner = 0): void {
    this.#recordOffset = recordOffset
    this.#ttl = ttl
    this.#owner = owner
  }

  /** Adds the address of 4 (family 4) or 16 octets at `at`. */
  add(family: Family, buf: Uint8Array, at: number): void {
    const i = this.count
    const to = i * 16
    const mapped = family === 6 && isMapped(buf, at)
    const size = family === 6 && !mapped ? 16 : 4
    const from = mapped ? at + 12 : at
    for (let j = 0; j < 16; j++) this.octets[to + j] = j < size ? buf[from + j]! : 0
    this.families[i] = size === 16 ? 6 : 4
    const same = i < LINEAR_MAX ? this.#scan(i) : this.#probe(i)
    if (same >= 0) {
      if (this.#ttl < this.ttls[same]!) this.ttls[same] = this.#ttl
      if (this.#owner > this.owners[same]!) this.owners[same] = this.#owner
      return
    }
    this.owners[i] = this.#owner
    this.ttls[i] = this.#ttl
    this.recordOffsets[i] = this.#recordOffset
    this.count = i + 1
  }

  /** Returns an index before `i` with the address of `i`, or -1. */
  #scan(i: number): number {
    for (let j = 0; j < i; j++) if (this.#same(i, j)) return j
    return -1
  }

  /** Does the same as `#scan`, but uses the hash table. */
  #probe(i: number): number {
    if (!this.#tabled) {
      this.#tabled = true
      this.#slots.fill(0)
      for (let j = 0; j < i; j++) this.#insert(j)
    }
    return this.#insert(i)
  }

  /** Returns an index with the address of `i`. If there is none, adds `i` to the hash table and returns -1. */
  #insert(i: number): number {
    let slot = hashOctets(this.octets, i * 16, 16) & (SLOTS - 1)
    for (;;) {
      const held = this.#slots[slot]! - 1
      if (held < 0) break
      if (this.#same(i, held)) return held
      slot = (slot + 1) & (SLOTS - 1)
    }
    this.#slots[slot] = i + 1
    return -1
  }

  #same(i: number, j: number): boolean {
    return (
      this.families[i] === this.families[j] &&
      sameOctets(this.octets, i * 16, this.octets, j * 16, 16)
    )
  }
}
