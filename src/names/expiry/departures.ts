// Endpoints that went and whose pairs have not all been forgotten. Nothing of them applies to anyone who
// comes after: the endpoint's number, its policy and its hook went at once, and no number is used again. What
// is left is to give back: in bounded steps, each costing the pairs it forgets.

import type { EndpointId } from '../../core/ids.ts'
import type { NameCache } from '../name-cache.ts'

export class Departures {
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

  /** Forgets at most so many pairs; true when none is left. */
  step(pairs: number): boolean {
    for (let left = pairs; left > 0;) {
      const endpoint = this.#waiting.at(-1)
      if (endpoint === undefined) return true
      const pair = this.#names.rows.orders.firstOf(endpoint)
      if (pair === 0) {
        this.#waiting.pop()
        continue
      }
      this.#names.forget(pair)
      left--
    }
    return !this.pending
  }
}
