// Relabels known names after the FQDN selectors changed. It passes over the names, then over the mappings whose facts follow, then
// over the entries for the facts in endpoints' own scopes. The last pass alone runs when an endpoint began or ended to have such a
// scope. Addresses from before a restart, whose names are unknown, come first. The passes work in bounded steps. An answer that
// touches a name meanwhile updates that name itself, so a new answer always carries the new selectors' labels.

import type { NameLabeller } from './fact-labels.ts'
import type { NameCache } from '../name-cache.ts'
import type { NameScopes } from '../name-scopes.ts'

/** Rows of addresses whose names are unknown. */
export interface RestoredRows {
  readonly count: number
  /** Brings the labels of one row, counted from 0, in line with the selectors in force. */
  relabel(index: number): void
}

export class Relabel {
  /** Set by a restart while addresses whose names are unknown have labels. */
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

  /** Looks at no more than `rows` names, mappings or entries; true when all labels are up to date. */
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

  /** A change of selectors needs all passes, one of scopes only the last. A pass under way begins again. */
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
