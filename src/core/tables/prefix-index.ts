// PrefixIndex maps prefixes to row numbers, in typed arrays. `find` looks up (family, octets, length), and `findAround` looks up the
// prefix of a given length around an address. There is no tree: few lengths are in use, so for a longest match the caller probes each of
// them. A row needs 19 octets, and two buckets need 8.

import { uint8Column } from './columns.ts'
import { HashIndex } from './hash-index.ts'
import { widthOf, type Family, type Prefix } from '../ip.ts'
import { hashOctets } from './keyed-hash.ts'
import { Slots } from './slots.ts'

export class PrefixIndex {
  readonly slots: Slots
  /** 16 octets per row. The bits beyond the prefix length are 0. */
  readonly octets: Uint8Array
  readonly lengths: Uint8Array
  readonly families: Uint8Array
  readonly #index: HashIndex
  readonly #scratch = new Uint8Array(16)

  /**
   * `capacity`: the most prefixes. `rows`: the most prefixes together with the rows that the owner takes from `slots` without `add`.
   * Default: `capacity`.
   */
  constructor(options: { readonly capacity: number; readonly rows?: number }) {
    const count = options.rows ?? options.capacity
    const rows = count + 1
    this.slots = new Slots(count)
    this.octets = uint8Column(rows * 16)
    this.lengths = uint8Column(rows)
    this.families = uint8Column(rows)
    this.#index = new HashIndex(options.capacity, this, count)
  }

  /** Returns the row of a prefix, 0 when there is none. The bits of the octets at `offset` beyond `length` must be 0. */
  find(family: Family, octets: Uint8Array, offset: number, length: number): number {
    const hash = hashPrefix(family, octets, offset, length)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || this.#equals(row, family, octets, offset, length)) return row
    }
  }

  /** Returns the row of the prefix with `length` bits that contains the address at `offset`, 0 when there is none. */
  findAround(family: Family, octets: Uint8Array, offset: number, length: number): number {
    if (length === widthOf(family)) return this.find(family, octets, offset, length)
    const scratch = this.#scratch.fill(0)
    const whole = length >> 3
    for (let i = 0; i < whole; i++) scratch[i] = octets[offset + i]!
    if (whole < 16) scratch[whole] = octets[offset + whole]! & (0xff00 >> (length & 7))
    return this.find(family, scratch, 0, length)
  }

  /** Adds a prefix that is not in the index. Returns its row, or 0 when the table is full. */
  add(family: Family, octets: Uint8Array, offset: number, length: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    for (let i = 0; i < 16; i++) this.octets[row * 16 + i] = octets[offset + i]!
    this.lengths[row] = length
    this.families[row] = family
    this.#index.insert(hashPrefix(family, octets, offset, length), row)
    return row
  }

  remove(row: number): void {
    this.#index.remove(row)
    this.slots.free(row)
  }

  family(row: number): Family {
    return this.families[row] === 4 ? 4 : 6
  }

  prefix(row: number): Prefix {
    const octets = this.octets.slice(row * 16, row * 16 + 16)
    return { family: this.family(row), octets, length: this.lengths[row]! }
  }

  hashOfRow(row: number): number {
    return hashPrefix(this.family(row), this.octets, row * 16, this.lengths[row]!)
  }

  #equals(
    row: number,
    family: Family,
    octets: Uint8Array,
    offset: number,
    length: number,
  ): boolean {
    if (this.lengths[row] !== length || this.families[row] !== family) return false
    const at = row * 16
    const width = family === 4 ? 4 : 16
    for (let i = 0; i < width; i++) if (this.octets[at + i] !== octets[offset + i]) return false
    return true
  }
}

function hashPrefix(family: Family, octets: Uint8Array, offset: number, length: number): number {
  return Math.imul(hashOctets(octets, offset, family === 4 ? 4 : 16) + length, 0x9e3779b1) >>> 0
}
