// Eviction makes room before an endpoint learns an unknown (name, address). At each bound of docs/spec/semantics 6 one entry or name
// goes, in the order stated there. An endpoint's own go first; only `pairs` and `names-per-address` take from the endpoint with the
// most. Entries of the present batch stay. When nothing may go, the new entry is refused.

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

const NEAR = 0.8
/** The most entries evicted for one more name on an address. A name with more entries keeps its place there. */
const TRIES_MAX = 16

export class Eviction {
  readonly #in: EvictionOptions
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

  /** Called before an eviction chooses, so often. */
  beforeEviction: () => void = () => undefined

  constructor(options: EvictionOptions) {
    this.#in = options
  }

  /** The use of each bound, at the place that uses it most. */
  uses(): Readonly<Record<NameBound, number>> {
    const { orders, entries, wildcards } = this.#in.rows
    return {
      'addresses-per-name': orders.largestUse,
      'names-per-wildcard': wildcards.largest,
      'wildcard-names': wildcards.count,
      'wildcard-names-per-endpoint': wildcards.largestEndpoint,
      'names-per-address': orders.largestAddress,
      'pairs-per-endpoint': orders.count(orders.largestEndpoint),
      pairs: entries.slots.used,
    }
  }

  /** Whether a bound is so near that eviction soon needs to know the open connections. */
  get isNear(): boolean {
    const { bounds, rows } = this.#in
    const { orders, entries, wildcards } = rows
    if (entries.slots.used > entries.slots.capacity * NEAR || wildcards.isNear || orders.hasLarge)
      return true
    const largest = orders.count(orders.largestEndpoint)
    return largest > bounds['pairs-per-endpoint'] * NEAR
  }

  /**
   * Makes room for the unknown entry of a lesson. An eviction may remove the last entry of a name or an address, so rows are
   * looked up after it. False: nothing may go, and the entry must be refused.
   */
  make(lesson: Lesson): boolean {
    const { rows, prefixes } = this.#in
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

  /** After a change of selectors: evicts names of wildcards and endpoints that now have too many. */
  trim(): void {
    const { wildcards } = this.#in.rows
    if (!wildcards.isOverfull) return
    this.beforeEviction()
    for (let over = wildcards.overfull(); over !== undefined; over = wildcards.overfull()) {
      this.hits[over.bound]++
      this.#forgetUse(over.use)
    }
  }

  /** Whether one more entry surely reaches no bound. True for most endpoints, which have few addresses and names. */
  #isWide(endpoint: number): boolean {
    const { bounds, rows } = this.#in
    const { orders, entries, wildcards } = rows
    if (orders.hasLarge || wildcards.isNear || entries.slots.used === entries.slots.capacity)
      return false
    if (bounds['addresses-per-name'] < LARGE || bounds['names-per-address'] < LARGE) return false
    return orders.count(endpoint) < bounds['pairs-per-endpoint']
  }

  /** Room for a name that is new to the endpoint. */
  #forName({ endpoint, name }: Lesson): boolean {
    const { wildcards, names, uses } = this.#in.rows
    const row = names.rowOf(name)
    if (row !== 0 && uses.find(endpoint, row) !== 0) return true
    const labels = this.#in.labeller.labelsOf(name.wire, 0)
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

  /** Room for one more address of a use; 0: the name is new to the endpoint. */
  #forAddress(use: number): boolean {
    const { bounds, rows } = this.#in
    const { uses, orders } = rows
    if (use === 0 || uses.entries[use]! < bounds['addresses-per-name']) return true
    this.beforeEviction()
    return this.#evict(orders.candidateOfUse(use), 'addresses-per-name')
  }

  /** Room for one more name on an address. */
  #onAddress(prefix: number): boolean {
    const { bounds, rows } = this.#in
    const { orders } = rows
    const { countOfPrefix } = rows.mappings
    for (let tries = 0; countOfPrefix[prefix]! >= bounds['names-per-address']; tries++) {
      const entry = tries < TRIES_MAX ? orders.candidateOfAddress(prefix) : 0
      if (!this.#evict(entry, 'names-per-address')) return false
    }
    return true
  }

  /** Room for one more entry of an endpoint. */
  #forEntry(endpoint: number): boolean {
    const { bounds, rows } = this.#in
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
    const { rows, forget } = this.#in
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
    this.#in.forget(entry)
    return true
  }
}
