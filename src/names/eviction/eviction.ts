// Eviction makes room before an endpoint learns an unknown (name, address). At each bound of docs/spec/semantics 6 it removes entries
// or names until there is room, in the order stated there. The endpoint that asks loses its own entries or names. There are two
// exceptions. At `pairs` the endpoint with the most entries loses an entry. At `names-per-address` the endpoint with the most names on
// the address loses entries. Entries of the present batch stay. If no entry can be removed, Eviction refuses the new entry.

import { widthOf } from '../../core/ip.ts'
import type { LimitKey } from '../../core/limits.ts'
import type { PrefixTable } from '../../ipcache/prefix-table.ts'
import type { NameLabeller } from '../labels/fact-labels.ts'
import type { Lesson } from '../lesson.ts'
import { LARGE } from './entry-orders.ts'
import type { EntryRows } from '../tables/entry-rows.ts'

export type NameBound = Extract<
  LimitKey,
  | 'addresses-per-name'
  | 'names-per-wildcard'
  | 'wildcard-names'
  | 'wildcard-names-per-endpoint'
  | 'names-per-address'
  | 'pairs-per-endpoint'
  | 'pairs'
>

export type NameBounds = Readonly<Record<NameBound, number>>

export interface EvictionOptions {
  readonly bounds: NameBounds
  readonly rows: EntryRows
  readonly prefixes: PrefixTable
  readonly labeller: NameLabeller
  readonly forget: (entry: number) => void
}

/** A bound is near when this part of it is in use. */
const NEAR = 0.8
/**
 * Eviction removes at most this many entries to make room for one more name on an address. An old name leaves the address only when its
 * last entry there is gone. If the address then still has too many names, Eviction refuses the new name.
 */
const TRIES_MAX = 16

export class Eviction {
  readonly #options: EvictionOptions
  /** Evictions and refusals at each bound. */
  readonly hits: Record<NameBound, number> = {
    'addresses-per-name': 0,
    'names-per-wildcard': 0,
    'wildcard-names': 0,
    'wildcard-names-per-endpoint': 0,
    'names-per-address': 0,
    'pairs-per-endpoint': 0,
    pairs: 0,
  }

  /** Called before each choice of an entry or name to remove. */
  beforeEviction: () => void = () => undefined

  constructor(options: EvictionOptions) {
    this.#options = options
  }

  /**
   * Returns how much of each bound is in use. For a bound per name, per address or per endpoint, this is the use of the name, address or
   * endpoint that has the most. Looks at every use and every prefix, which takes 1 ms for a million of each.
   */
  uses(): Readonly<Record<NameBound, number>> {
    const { rows, prefixes } = this.#options
    const { orders, entries, mappings, uses, wildcards } = rows
    return {
      'addresses-per-name': largest(uses.entries, uses.slots.high),
      'names-per-wildcard': wildcards.largest,
      'wildcard-names': wildcards.count,
      'wildcard-names-per-endpoint': wildcards.largestEndpoint,
      'names-per-address': largest(mappings.countOfPrefix, prefixes.slots.high),
      'pairs-per-endpoint': orders.count(orders.largestEndpoint),
      pairs: entries.slots.used,
    }
  }

  /**
   * True when a bound is so near that an eviction can come soon. Expiry then looks at the connections before the eviction, because
   * entries with an open connection are removed last.
   */
  get isNear(): boolean {
    const { bounds, rows } = this.#options
    const { orders, entries, wildcards } = rows
    if (bounds['addresses-per-name'] < LARGE) return true
    if (entries.slots.used > entries.slots.capacity * NEAR || wildcards.isNear || orders.hasLarge)
      return true
    const largest = orders.count(orders.largestEndpoint)
    return largest > bounds['pairs-per-endpoint'] * NEAR
  }

  /**
   * Makes room for the unknown entry of a lesson. Returns false if no entry can be removed; the caller must then refuse the new entry. An
   * eviction can remove the last entry of a name or an address, and then also its row. So each step looks up the rows that it needs only
   * after the evictions of earlier steps.
   */
  make(lesson: Lesson): boolean {
    const { rows, prefixes } = this.#options
    const { endpoint, name, family, octets, offset } = lesson
    if (this.#isWide(endpoint)) return true
    if (rows.wildcards.isNear && !this.#forName(lesson)) return false
    const nameRow = rows.names.rowOf(name)
    const use = nameRow === 0 ? 0 : rows.uses.find(endpoint, nameRow)
    if (!this.#forAddress(use)) return false
    const prefix = prefixes.find(family, octets, offset, widthOf(family))
    const isKnown = nameRow !== 0 && prefix !== 0 && rows.mappings.find(nameRow, prefix) !== 0
    if (!isKnown && prefix !== 0 && !this.#onAddress(prefix)) return false
    return this.#forEntry(endpoint)
  }

  /** Call after names got other labels. Removes names from wildcards and endpoints that now have too many. */
  trim(): void {
    const { wildcards } = this.#options.rows
    if (!wildcards.isOverfull) return
    this.beforeEviction()
    for (let over = wildcards.overfull(); over !== undefined; over = wildcards.overfull()) {
      this.hits[over.bound]++
      this.#forgetUse(over.use)
    }
  }

  /** Returns true if one more entry certainly exceeds no bound. This holds for most endpoints, which have few addresses and names. */
  #isWide(endpoint: number): boolean {
    const { bounds, rows } = this.#options
    const { orders, entries, wildcards } = rows
    if (orders.hasLarge || wildcards.isNear || entries.slots.used === entries.slots.capacity)
      return false
    if (bounds['addresses-per-name'] < LARGE || bounds['names-per-address'] < LARGE) return false
    return orders.count(endpoint) < bounds['pairs-per-endpoint']
  }

  /** Makes room for a name that is new to the endpoint. Returns false if no name can be removed. */
  #forName({ endpoint, name }: Lesson): boolean {
    const { wildcards, names, uses } = this.#options.rows
    const row = names.rowOf(name)
    if (row !== 0 && uses.find(endpoint, row) !== 0) return true
    const labels = this.#options.labeller.labelsOfKey(name)
    while (wildcards.candidateFor(endpoint, labels) !== 0) {
      this.beforeEviction()
      const use = wildcards.candidateFor(endpoint, labels)
      this.hits['names-per-wildcard']++
      if (use === undefined) return false
      this.#forgetUse(use)
    }
    for (let bound = wildcards.lacks(endpoint, labels); bound !== undefined;) {
      this.beforeEviction()
      const use = wildcards.candidateOfEndpoint(endpoint, labels)
      this.hits[bound]++
      if (use === 0) return false
      this.#forgetUse(use)
      bound = wildcards.lacks(endpoint, labels)
    }
    return true
  }

  /** Makes room for one more address of a use. Returns false if no entry can be removed. Use 0: the name is new to the endpoint. */
  #forAddress(use: number): boolean {
    const { bounds, rows } = this.#options
    const { uses, orders } = rows
    if (use === 0 || uses.entries[use]! < bounds['addresses-per-name']) return true
    this.beforeEviction()
    return this.#evict(orders.candidateOfUse(use), 'addresses-per-name')
  }

  /** Makes room for one more name on an address. Returns false if that is not possible. */
  #onAddress(prefix: number): boolean {
    const { bounds, rows } = this.#options
    const { orders } = rows
    const { countOfPrefix } = rows.mappings
    for (let tries = 0; countOfPrefix[prefix]! >= bounds['names-per-address']; tries++) {
      const entry = tries < TRIES_MAX ? orders.candidateOfAddress(prefix) : 0
      if (!this.#evict(entry, 'names-per-address')) return false
    }
    return true
  }

  /** Makes room for one more entry of an endpoint. Returns false if no entry can be removed. */
  #forEntry(endpoint: number): boolean {
    const { bounds, rows } = this.#options
    const { orders, entries } = rows
    if (orders.count(endpoint) >= bounds['pairs-per-endpoint']) {
      this.beforeEviction()
      return this.#evict(orders.candidateOfEndpoint(endpoint), 'pairs-per-endpoint')
    }
    if (entries.slots.used < entries.slots.capacity) return true
    this.beforeEviction()
    return this.#evict(orders.candidateOfEndpoint(orders.largestEndpoint), 'pairs')
  }

  #forgetUse(use: number): void {
    const { rows, forget } = this.#options
    const { uses, entries } = rows
    for (let entry = uses.firstEntry[use]!; entry !== 0;) {
      const next = entries.nextOfUse[entry]!
      forget(entry)
      entry = next
    }
  }

  #evict(entry: number, bound: NameBound): boolean {
    this.hits[bound]++
    if (entry === 0) return false
    this.#options.forget(entry)
    return true
  }
}

/** The largest number of a column in rows 1 to `high`. */
function largest(column: Int32Array, high: number): number {
  let most = 0
  for (let row = 1; row <= high; row++) most = Math.max(most, column[row]!)
  return most
}
