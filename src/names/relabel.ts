// After the FQDN selectors changed, known names get their labels anew: one pass over the names, then one
// over the mappings whose facts follow. Bounded steps; names that an answer touches meanwhile are brought
// up to date by the answer itself, so a new answer always carries the new selectors' labels.

import type { NameCache, NameLabeller } from './name-cache.ts'

export class Relabel {
  readonly #names: NameCache
  readonly #labeller: NameLabeller
  #epoch: number
  #nextName = 0
  #nextMapping = 0
  #active = false

  constructor(options: { readonly names: NameCache; readonly labeller: NameLabeller }) {
    this.#names = options.names
    this.#labeller = options.labeller
    this.#epoch = options.labeller.epoch
  }

  get pending(): boolean {
    return this.#active || this.#epoch !== this.#labeller.epoch
  }

  /** Looks at no more than `rows` names or mappings; true when all labels are up to date. */
  step(rows: number): boolean {
    if (this.#epoch !== this.#labeller.epoch) {
      this.#epoch = this.#labeller.epoch
      this.#nextName = 1
      this.#nextMapping = 1
      this.#active = true
    }
    if (!this.#active) return true
    const { names, mappings } = this.#names
    let left = rows
    for (; left > 0 && this.#nextName <= names.slots.high; left--) {
      const name = this.#nextName++
      if (names.isUsed(name)) this.#names.relabelName(name)
    }
    for (; left > 0 && this.#nextMapping <= mappings.slots.high; left--) {
      const mapping = this.#nextMapping++
      const done = !mappings.isUsed(mapping) || this.#names.relabelMapping(mapping)
      if (!done) this.#names.countUnlabelled()
    }
    this.#active = this.#nextMapping <= mappings.slots.high || this.#nextName <= names.slots.high
    return !this.#active
  }
}
