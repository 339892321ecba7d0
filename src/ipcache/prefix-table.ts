// The prefixes that facts or names speak of, one row each, found by (family, octets, length). Rows of full
// length are hosts; shorter ones (and only those) can contain others. All columns are typed arrays of the
// table's capacity: 1,000,000 rows cost about 45 octets each, and a collection never looks inside.
//
// Containment is by probing: a prefix asks for each shorter length that is in use, longest first. There is
// no tree: the lengths in use are few, and what changes downwards is found by one pass over the rows
// (CFP-28427 "Lifecycle" weighs the two).

import { HashIndex } from '../core/hash-index.ts'
import { identity, type Identity } from '../core/ids.ts'
import { formatPrefix, widthOf, type Family, type Prefix } from '../core/ip.ts'
import { hashOctets } from '../core/name.ts'
import { Slots } from '../core/slots.ts'

export class PrefixTable {
  readonly slots: Slots
  readonly octets: Uint8Array
  readonly lengths: Uint8Array
  readonly families: Uint8Array
  /** Label set of the row's own facts. */
  readonly own: Int32Array
  /** Label set with what is inherited. */
  readonly derived: Int32Array
  /** Row of the longest container, 0 without one. */
  readonly parent: Int32Array
  readonly addressClass: Uint8Array
  readonly firstFact: Int32Array
  /** Identity wanted in the datapath; 0: no entry. */
  readonly wanted: Int32Array
  /** Identity that the datapath confirmed; 0: no entry. */
  readonly applied: Int32Array
  readonly appliedClass: Uint8Array
  /** Bit 0: in the list of changes; bit 1: the datapath refused it; bit 2: identity lacks labels. */
  readonly flags: Uint8Array
  /** Facts and names that hold the row. */
  readonly users: Int32Array
  readonly #index: HashIndex
  /** Containers by length, for each family. */
  readonly #containers = { 4: new Int32Array(33), 6: new Int32Array(129) }
  readonly #scratch = new Uint8Array(16)

  constructor(options: { readonly capacity: number }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.octets = new Uint8Array(rows * 16)
    this.lengths = new Uint8Array(rows)
    this.families = new Uint8Array(rows)
    this.own = new Int32Array(rows)
    this.derived = new Int32Array(rows)
    this.parent = new Int32Array(rows)
    this.addressClass = new Uint8Array(rows)
    this.firstFact = new Int32Array(rows)
    this.wanted = new Int32Array(rows)
    this.applied = new Int32Array(rows)
    this.appliedClass = new Uint8Array(rows)
    this.flags = new Uint8Array(rows)
    this.users = new Int32Array(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  /** The row of a prefix, 0 when there is none. The 16 octets at `offset` have zeros behind `length`. */
  find(family: Family, octets: Uint8Array, offset: number, length: number): number {
    const hash = hashPrefix(family, octets, offset, length)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at)) {
      const row = this.#index.row(at)
      if (row === 0 || this.#equals(row, family, octets, offset, length)) return row
    }
  }

  /** The row of a prefix, made when there is none; 0 when the table is full. */
  findOrAdd(family: Family, octets: Uint8Array, offset: number, length: number): number {
    const known = this.find(family, octets, offset, length)
    if (known !== 0) return known
    const row = this.slots.take()
    if (row === 0) return 0
    for (let i = 0; i < 16; i++) this.octets[row * 16 + i] = octets[offset + i]!
    this.lengths[row] = length
    this.families[row] = family
    this.#index.insert(hashPrefix(family, octets, offset, length), row)
    this.parent[row] = this.findContainer(row)
    return row
  }

  /** Frees a row that nothing holds. */
  remove(row: number): void {
    this.#index.remove(row)
    this.own[row] = 0
    this.derived[row] = 0
    this.parent[row] = 0
    this.addressClass[row] = 0
    this.wanted[row] = 0
    this.applied[row] = 0
    this.appliedClass[row] = 0
    this.flags[row] = 0
    this.slots.free(row)
  }

  /** Says that a row shorter than a host begins (1) or ceases (-1) to pass labels down. */
  countContainer(row: number, change: 1 | -1): void {
    this.#containers[this.family(row)][this.lengths[row]!]! += change
  }

  canContain(row: number): boolean {
    return this.lengths[row]! < widthOf(this.family(row))
  }

  /** The longest container around a row, 0 without one. */
  findContainer(row: number): number {
    const family = this.family(row)
    const counts = this.#containers[family]
    for (let length = this.lengths[row]! - 1; length >= 0; length--) {
      if (counts[length] === 0) continue
      const found = this.#findTruncated(row, family, length)
      if (found !== 0 && this.firstFact[found] !== 0) return found
    }
    return 0
  }

  family(row: number): Family {
    return this.families[row] === 4 ? 4 : 6
  }

  identityOf(row: number): Identity {
    return identity(this.wanted[row]!)
  }

  prefix(row: number): Prefix {
    const octets = this.octets.slice(row * 16, row * 16 + 16)
    return { family: this.family(row), octets, length: this.lengths[row]! }
  }

  format(row: number): string {
    return formatPrefix(this.prefix(row))
  }

  hashOfRow(row: number): number {
    return hashPrefix(this.family(row), this.octets, row * 16, this.lengths[row]!)
  }

  #findTruncated(row: number, family: Family, length: number): number {
    const scratch = this.#scratch.fill(0)
    const whole = length >> 3
    for (let i = 0; i < whole; i++) scratch[i] = this.octets[row * 16 + i]!
    if (whole < 16) scratch[whole] = this.octets[row * 16 + whole]! & (0xff00 >> (length & 7))
    return this.find(family, scratch, 0, length)
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
