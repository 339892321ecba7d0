// Relabel updates the labels of known names after the FQDN selectors changed. It makes four passes, in bounded steps:
//   1. addresses from before a restart whose names are unknown
//   2. names
//   3. mappings, for the facts in the node's scope
//   4. entries, for the facts in the endpoints' own scopes
//
// If only the endpoints' own scopes changed, pass 4 runs alone. An answer that comes between the steps updates the labels of its name
// itself, so a new answer always carries the labels of the new selectors.

import type { NameLabeller } from './fact-labels.ts'
import type { NameCache } from '../name-cache.ts'
import type { NameScopes } from '../name-scopes.ts'

/** The addresses from before a restart whose names are unknown. */
export interface RestoredRows {
  readonly count: number
  /** Makes the labels of one address agree with the selectors in force. `index` is 0 to `count` - 1. */
  relabel(index: number): void
}

export class Relabel {
  /** Set by a restart while there are such addresses. */
  restored: RestoredRows | undefined
  readonly #names: NameCache
  readonly #labeller: NameLabeller
  readonly #scopes: NameScopes
  #epoch: number
  #scopesEpoch: number
  #nextRestored = 0
  #nextName = 0
  #nextMapping = 0
  #nextEntry = 0
  #active = false

  constructor(options: {
    readonly names: NameCache
    readonly labeller: NameLabeller
    readonly scopes: NameScopes
  }) {
    this.#names = options.names
    this.#labeller = options.labeller
    this.#scopes = options.scopes
    this.#epoch = options.labeller.epoch
    this.#scopesEpoch = options.scopes.epoch
  }

  get #restoredCount(): number {
    return this.restored?.count ?? 0
  }

  get pending(): boolean {
    return this.#active || this.#isStale
  }

  get #isStale(): boolean {
    return this.#epoch !== this.#labeller.epoch || this.#scopesEpoch !== this.#scopes.epoch
  }

  /** Handles at most `rows` addresses, names, mappings and entries together. Returns true when all labels are up to date. */
  step(rows: number): boolean {
    if (this.#isStale) this.#begin()
    if (!this.#active) return true
    const { names, mappings, entries } = this.#names
    let left = rows
    for (; left > 0 && this.#nextRestored < this.#restoredCount; left--) {
      this.restored?.relabel(this.#nextRestored++)
    }
    for (; left > 0 && this.#nextName <= names.slots.high; left--) {
      const name = this.#nextName++
      if (names.isUsed(name)) this.#names.labels.relabelName(name)
      this.#names.eviction.trim()
    }
    for (; left > 0 && this.#nextMapping <= mappings.slots.high; left--) {
      const mapping = this.#nextMapping++
      const done = !mappings.isUsed(mapping) || this.#names.labels.relabelMapping(mapping)
      if (!done) this.#names.countUnlabelled()
    }
    for (; left > 0 && this.#nextEntry <= entries.slots.high; left--) {
      const entry = this.#nextEntry++
      const done = !entries.isUsed(entry) || this.#names.labels.relabelEntry(entry)
      if (!done) this.#names.countUnlabelled()
    }
    this.#active =
      this.#nextRestored < this.#restoredCount ||
      this.#nextEntry <= entries.slots.high ||
      this.#nextMapping <= mappings.slots.high ||
      this.#nextName <= names.slots.high
    return !this.#active
  }

  /** Begins the passes. A change of selectors needs all passes, a change of scopes only the last. Interrupted passes begin again. */
  #begin(): void {
    const { names, mappings, entries } = this.#names
    const selectors = this.#epoch !== this.#labeller.epoch
    const scopes = this.#scopesEpoch !== this.#scopes.epoch || this.#scopes.inUse
    const underWay = this.#active && this.#nextEntry <= entries.slots.high
    if (selectors || !this.#active) {
      this.#nextRestored = selectors ? 0 : this.#restoredCount
      this.#nextName = selectors ? 1 : names.slots.high + 1
      this.#nextMapping = selectors ? 1 : mappings.slots.high + 1
    }
    this.#nextEntry = scopes || underWay ? 1 : entries.slots.high + 1
    this.#epoch = this.#labeller.epoch
    this.#scopesEpoch = this.#scopes.epoch
    this.#active = true
  }
}
