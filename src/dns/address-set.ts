// Addresses that one answer teaches, each once, with the least TTL that came with it. IPv4 is family 4 with
// its octets in the first 4 of 16 and zeros behind; IPv4-mapped IPv6 is IPv4 (core/ip.ts).
// AnswerView fills it and learning reads it. It is reused for the next answer and never grows, because a message holds at
// most `ADDRESSES_MAX`.
// Cost: up to 16 addresses are compared one by one, more go through a hash table.

import { isMapped, type Family } from '../core/ip.ts'
import { hashOctets } from '../core/tables/keyed-hash.ts'
import { sameOctets } from './wire.ts'

/** Addresses are densest as hints of one SVCB record, 4 octets each: below 65,535 / 4. A records have 15 or more. */
export const ADDRESSES_MAX = 16_383
const LINEAR_MAX = 16
/** Power of two, load at most 0.5. */
const SLOTS = 32_768

export class AddressSet {
  count = 0
  /** 4 or 6. */
  readonly families = new Uint8Array(ADDRESSES_MAX)
  /** 16 an address. */
  readonly octets = new Uint8Array(ADDRESSES_MAX * 16)
  /** Seconds, as the message says: 0..2^31-1, not clamped. */
  readonly ttls = new Uint32Array(ADDRESSES_MAX)
  /** Octets from the start of the message to the first record that carries the address. */
  readonly recordOffsets = new Uint16Array(ADDRESSES_MAX)
  /** Which name of the chain owns the address; of several the last. */
  readonly owners = new Uint8Array(ADDRESSES_MAX)
  readonly #slots = new Uint16Array(SLOTS)
  /** Whether the table holds this answer's addresses; it is filled when the 17th comes. */
  #tabled = false

  clear(): void {
    this.count = 0
    this.#tabled = false
  }

  /** Adds the 4 (family 4) or 16 octets at `at`; `owner`: a name of the chain, 0 the question. */
  add(
    family: Family,
    buf: Uint8Array,
    at: number,
    ttl: number,
    recordOffset: number,
    owner = 0,
  ): void {
    const i = this.count
    const to = i * 16
    const mapped = family === 6 && isMapped(buf, at)
    const size = family === 6 && !mapped ? 16 : 4
    const from = mapped ? at + 12 : at
    for (let j = 0; j < 16; j++) this.octets[to + j] = j < size ? buf[from + j]! : 0
    this.families[i] = size === 16 ? 6 : 4
    const same = i < LINEAR_MAX ? this.#scan(i) : this.#probe(i)
    if (same >= 0) {
      if (ttl < this.ttls[same]!) this.ttls[same] = ttl
      if (owner > this.owners[same]!) this.owners[same] = owner
      return
    }
    this.owners[i] = owner
    this.ttls[i] = ttl
    this.recordOffsets[i] = recordOffset
    this.count = i + 1
  }

  /** The entry before `i` with i's address, or -1. */
  #scan(i: number): number {
    for (let j = 0; j < i; j++) if (this.#same(i, j)) return j
    return -1
  }

  /** As `#scan`, by the table. */
  #probe(i: number): number {
    if (!this.#tabled) {
      this.#tabled = true
      this.#slots.fill(0)
      for (let j = 0; j < i; j++) this.#insert(j)
    }
    return this.#insert(i)
  }

  /** The entry with i's address, or -1 after i took a slot of its own. */
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
