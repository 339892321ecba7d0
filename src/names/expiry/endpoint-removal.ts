// Endpoints that went and whose entries have not all been forgotten. Nothing of them applies to anyone who
// comes after: the endpoint's number, its policy and its hook went at once, and no number is used again. What
// is left is to give back: in bounded steps, each costing the entries it forgets.

import type { EndpointId } from '../../core/ids.ts'
import type { NameCache } from '../name-cache.ts'

export class EndpointRemoval {
  readonly #names: NameCache
  readonly #waiting: EndpointId[] = []

  constructor(options: { readonly names: NameCache }) {
    this.#names = options.names
  }

  get pending(): boolean {
    return this.#waiting.length > 0
  }

  add(endpoint: EndpointId): void {
    this.#waiting.push(endpoint)
  }

  /** Forgets at most so many entries; true when none is left. */
  step(entries: number): boolean {
    for (let left = entries; left > 0;) {
      const endpoint = this.#waiting.at(-1)
      if (endpoint === undefined) return true
      const entry = this.#names.rows.orders.firstOf(endpoint)
      if (entry === 0) {
        this.#waiting.pop()
        continue
      }
      this.#names.forget(entry)
      left--
    }
    return !this.pending
  }
}
