// The prefixes of facts and names, one row each. An address has one more row for each endpoint that has its own view of it
// (scoped-rows.ts). Rows of full length are hosts. Only shorter rows can contain others. All columns are typed arrays of the table's
// capacity: 1,000,000 rows cost about 50 octets each, and the garbage collector never looks inside.
//
// Containment is by probing: a prefix asks for each shorter length in use, longest first. There is no tree. One pass over the rows
// carries changes downwards (CFP-28427 "Lifecycle" weighs the two).

import { identity, type Identity } from '../core/ids.ts'
import { commonBits, type Family, formatPrefix, type Prefix, widthOf } from '../core/ip.ts'
import { PrefixIndex } from '../core/tables/prefix-index.ts'
import type { Slots } from '../core/tables/slots.ts'
import { ScopedRows } from './scoped-rows.ts'

export interface PrefixTableOptions {
  /** Rows of the node. */
  readonly capacity: number
  /** Rows of endpoints' own scopes, over and above. */
  readonly scopedCapacity: number
}

export class PrefixTable {
  readonly slots: Slots
  readonly octets: Uint8Array
  readonly lengths: Uint8Array
  /** Label set of the row's own facts. */
  readonly own: Int32Array
  /** Label set with the inherited labels. */
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
  /** Bits of ipcache.ts: changed, refused, degraded. */
  readonly flags: Uint8Array
  /** Facts and names that hold the row. */
  readonly users: Int32Array
  readonly scoped: ScopedRows
  /** Rows that pass labels down. */
  readonly containers = new Set<number>()
  readonly #index: PrefixIndex
  readonly #capacity: number
  /** Lengths of containers. */
  readonly #lengths = { 4: new LengthsInUse(), 6: new LengthsInUse() }

  constructor(options: PrefixTableOptions) {
    const { capacity, scopedCapacity } = options
    const count = capacity + scopedCapacity
    const rows = count + 1
    this.#capacity = capacity
    this.#index = new PrefixIndex({ capacity, rows: count })
    this.slots = this.#index.slots
    this.octets = this.#index.octets
    this.lengths = this.#index.lengths
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
    this.scoped = new ScopedRows({ capacity: scopedCapacity, rows: count })
  }

  /** The node's row of a prefix, 0 when there is none. The 16 octets at `offset` have zeros behind `length`. */
  find(family: Family, octets: Uint8Array, offset: number, length: number): number {
    return this.#index.find(family, octets, offset, length)
  }

  /** The node's row of a prefix, created when missing; 0 when the table is full. */
  findOrAdd(family: Family, octets: Uint8Array, offset: number, length: number): number {
    const known = this.#index.find(family, octets, offset, length)
    if (known !== 0) return known
    // Both kinds share the rows, but neither may take the other's.
    if (this.slots.used - this.scoped.count >= this.#capacity) return 0
    const row = this.#index.add(family, octets, offset, length)
    if (row !== 0) this.parent[row] = this.findContainer(row)
    return row
  }

  /** The row of a prefix in a scope, 0 when there is none; scope 0 is the node's. */
  findIn(
    scope: number,
    family: Family,
    octets: Uint8Array,
    offset: number,
    length: number,
  ): number {
    const row = this.#index.find(family, octets, offset, length)
    return row === 0 || scope === 0 ? row : this.scoped.find(scope, row)
  }

  /** The row of an endpoint's view over the node's row of a host, created when missing; 0 when full. */
  findOrAddScoped(scope: number, base: number): number {
    const known = this.scoped.find(scope, base)
    if (known !== 0) return known
    const row = this.scoped.isFull ? 0 : this.slots.take()
    if (row === 0) return 0
    this.octets.copyWithin(row * 16, base * 16, base * 16 + 16)
    this.lengths[row] = this.lengths[base]!
    this.#index.families[row] = this.#index.families[base]!
    this.scoped.add(row, scope, base)
    this.users[base]!++
    return row
  }

  /** Frees a row that nothing holds. */
  remove(row: number): void {
    if (this.scoped.scope[row] === 0) {
      this.#index.remove(row)
    } else {
      this.scoped.remove(row)
      this.slots.free(row)
    }
    this.own[row] = 0
    this.derived[row] = 0
    this.parent[row] = 0
    this.addressClass[row] = 0
    this.wanted[row] = 0
    this.applied[row] = 0
    this.appliedClass[row] = 0
    this.flags[row] = 0
  }

  /** Call when a row shorter than a host begins (1) or ceases (-1) to pass labels down. */
  countContainer(row: number, change: 1 | -1): void {
    this.#lengths[this.family(row)].count(this.lengths[row]!, change)
    if (change === 1) this.containers.add(row)
    else this.containers.delete(row)
  }

  canContain(row: number): boolean {
    return this.lengths[row]! < widthOf(this.family(row))
  }

  /** Whether a row is inside another one's prefix, or has the same. */
  isInside(row: number, outer: number): boolean {
    const length = this.lengths[outer]!
    if (this.lengths[row]! < length || this.family(row) !== this.family(outer)) return false
    const { octets } = this
    return commonBits(octets, row * 16, octets, outer * 16, length) === length
  }

  /** The row that a row inherits from, 0 without one: the longest container; of a scoped row first its base. */
  findContainer(row: number): number {
    const base = this.scoped.base[row]!
    if (base !== 0 && this.firstFact[base] !== 0) return base
    const family = this.family(row)
    const own = this.lengths[row]!
    for (const length of this.#lengths[family].longestFirst) {
      if (length >= own) continue
      const found = this.#index.findAround(family, this.octets, row * 16, length)
      if (found !== 0 && this.firstFact[found] !== 0) return found
    }
    return 0
  }

  /** The node's most specific row of an address: its own, else its longest container; 0 when nothing is known. */
  findAround(family: Family, octets: Uint8Array, offset: number): number {
    const own = this.#index.find(family, octets, offset, widthOf(family))
    if (own !== 0 && this.firstFact[own] !== 0) return own
    for (const length of this.#lengths[family].longestFirst) {
      const found = this.#index.findAround(family, octets, offset, length)
      if (found !== 0 && this.firstFact[found] !== 0) return found
    }
    return 0
  }

  family(row: number): Family {
    return this.#index.family(row)
  }

  identityOf(row: number): Identity {
    return identity(this.wanted[row]!)
  }

  /** What the datapath confirmed of a row that it has. */
  appliedOf(row: number): { readonly id: Identity; readonly addressClass: Identity } {
    return {
      id: identity(this.applied[row]!),
      addressClass: identity(this.appliedClass[row]!),
    }
  }

  prefix(row: number): Prefix {
    return this.#index.prefix(row)
  }

  format(row: number): string {
    return formatPrefix(this.prefix(row))
  }
}

const LENGTHS = 129

/**
 * The lengths of the prefixes that pass labels down, for one family: few of the 33 or 129 possible ones. A longest match asks for
 * these alone. The table counts here when a container comes or goes.
 */
export class LengthsInUse {
  readonly #counts = new Int32Array(LENGTHS)
  #longestFirst: readonly number[] = []

  /** Each length once. */
  get longestFirst(): readonly number[] {
    return this.#longestFirst
  }

  /** A prefix of a length came (1) or went (-1). */
  count(length: number, change: 1 | -1): void {
    const now = this.#counts[length]! + change
    this.#counts[length] = now
    const isNews = now === 0 || now - change === 0
    if (!isNews) return
    const others = this.#longestFirst.filter((other) => other !== length)
    this.#longestFirst = now === 0 ? others : [...others, length].sort((a, b) => b - a)
  }
}
