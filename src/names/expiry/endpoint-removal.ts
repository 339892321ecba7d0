// Forgets the entries of endpoints that are gone, in bounded steps. The endpoint's number, policy and hook went at once, and no
// number is used again, so these entries apply to no later endpoint.

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
