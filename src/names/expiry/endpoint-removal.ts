// EndpointRemoval removes the entries of removed endpoints, in bounded steps. The number, policy and hook of such an endpoint were
// removed at once. Numbers are never used again, so the remaining entries apply to no later endpoint.

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

  /** Removes at most `entries` entries. Returns true when no entry of a removed endpoint is left. */
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
