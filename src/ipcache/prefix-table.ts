// PrefixTable has one row for each prefix of facts and names. An address has one more row for each endpoint with its own view of the
// address (scoped-rows.ts). Rows of full length are hosts. Only rows of shorter prefixes can be containers of other rows. All columns are
// typed arrays of the table's capacity. A row needs about 50 octets, which the garbage collector does not look at.
//
// There is no tree. To find the container of a prefix, the table looks up each shorter length in use, the longest first. One pass over
// the rows (`Rederive`) applies a change of a container to the rows inside (CFP-28427 "Lifecycle" compares this with a tree).

import { int32Column, uint8Column } from '../core/tables/columns.ts'
import { identity, type Identity } from '../core/ids.ts'
import { commonBits, type Family, formatPrefix, type Prefix, widthOf } from '../core/ip.ts'
import { PrefixIndex } from '../core/tables/prefix-index.ts'
import type { Slots } from '../core/tables/slots.ts'
import { ScopedRows } from './scoped-rows.ts'

export class PrefixTable {
  readonly slots: Slots
  readonly octets: Uint8Array
  readonly lengths: Uint8Array
  /** Label set of the row's own facts. */
  readonly own: Int32Array
  /** Label set of the own and the inherited labels. */
  readonly derived: Int32Array
  /** Row of the container, 0 without one. */
  readonly parent: Int32Array
  readonly addressClass: Uint8Array
  readonly firstFact: Int32Array
  /** Identity that the datapath has to have, 0 for no entry. */
  readonly wanted: Int32Array
  /** Identity that the datapath confirmed, 0 for no entry. */
  readonly applied: Int32Array
  readonly appliedClass: Uint8Array
  /** The bits ROW_CHANGED, ROW_REFUSED, ROW_DEGRADED and ROW_UNDER_WAY of ipcache.ts. */
  readonly flags: Uint8Array
  /** How many facts, views and callers of `holdAddress` use the row. */
  readonly users: Int32Array
  readonly scoped: ScopedRows
  /** Rows of shorter prefixes that have facts, so that rows inside inherit their labels. */
  readonly containers = new Set<number>()
  readonly #index: PrefixIndex
  readonly #capacity: number
  /** Lengths of the containers. */
  readonly #lengths = { 4: new LengthsInUse(), 6: new LengthsInUse() }

  constructor(options: {
    /** The most rows of the node. */
    readonly capacity: number
    /** The most rows in endpoints' own scopes, in addition to `capacity`. */
    readonly scopedCapacity: number
  }) {
    const { capacity, scopedCapacity } = options
    const count = capacity + scopedCapacity
    const rows = count + 1
    this.#capacity = capacity
    this.#index = new PrefixIndex({ capacity, rows: count })
    this.slots = this.#index.slots
    this.octets = this.#index.octets
    this.lengths = this.#index.lengths
    this.own = int32Column(rows)
    this.derived = int32Column(rows)
    this.parent = int32Column(rows)
    this.addressClass = uint8Column(rows)
    this.firstFact = int32Column(rows)
    this.wanted = int32Column(rows)
    this.applied = int32Column(rows)
    this.appliedClass = uint8Column(rows)
    this.flags = uint8Column(rows)
    this.users = int32Column(rows)
    this.scoped = new ScopedRows({ capacity: scopedCapacity, rows: count })
  }

  /** Returns the node's row of a prefix, 0 when there is none. The bits of the octets at `offset` beyond `length` must be 0. */
  find(family: Family, octets: Uint8Array, offset: number, length: number): number {
    return this.#index.find(family, octets, offset, length)
  }

  /** Returns the node's row of a prefix, added when missing, or 0 when the table is full. */
  findOrAdd(family: Family, octets: Uint8Array, offset: number, length: number): number {
    const known = this.#index.find(family, octets, offset, length)
    if (known !== 0) return known
    // Rows of the node and views share the slots, but each kind has its own capacity.
    if (this.slots.used - this.scoped.count >= this.#capacity) return 0
    const row = this.#index.add(family, octets, offset, length)
    if (row !== 0) this.parent[row] = this.findContainer(row)
    return row
  }

  /** Returns the row of a prefix in a scope, 0 when there is none. Scope 0 is the node's. */
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

  /** Returns the endpoint's view of a host, added when missing, or 0 when the table is full. `base`: the node's row of the host. */
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

  /** Frees a row without users. */
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

  /** Call when a row of a shorter prefix got its first fact (1) or lost its last one (-1). */
  countContainer(row: number, change: 1 | -1): void {
    this.#lengths[this.family(row)].count(this.lengths[row]!, change)
    if (change === 1) this.containers.add(row)
    else this.containers.delete(row)
  }

  canContain(row: number): boolean {
    return this.lengths[row]! < widthOf(this.family(row))
  }

  /** Returns true if the prefix of `row` is inside the prefix of `outer`, or equal to it. */
  isInside(row: number, outer: number): boolean {
    const length = this.lengths[outer]!
    if (this.lengths[row]! < length || this.family(row) !== this.family(outer)) return false
    const { octets } = this
    return commonBits(octets, row * 16, octets, outer * 16, length) === length
  }

  /** Returns the row from which a row inherits labels, 0 without one. A view inherits from its base if the base has facts. */
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

  /** Returns the node's row of an address if it has facts, or the longest container of the address, or 0 when there is none. */
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

  /** Returns the identity and the class that the datapath confirmed for a row. */
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
 * The lengths of the containers of one family. Of the 33 or 129 possible lengths few are in use, and a longest match looks only for
 * these. The table calls `count` when a container is added or removed.
 */
export class LengthsInUse {
  readonly #counts = new Int32Array(LENGTHS)
  #longestFirst: readonly number[] = []

  /** The lengths in use, each once, the longest first. */
  get longestFirst(): readonly number[] {
    return this.#longestFirst
  }

  /** Counts a container of this length that was added (1) or removed (-1). */
  count(length: number, change: 1 | -1): void {
    const now = this.#counts[length]! + change
    this.#counts[length] = now
    const isNews = now === 0 || now - change === 0
    if (!isNews) return
    const others = this.#longestFirst.filter((other) => other !== length)
    this.#longestFirst = now === 0 ? others : [...others, length].sort((a, b) => b - a)
  }
}
