// DynamicBudget counts the dynamic identities (docs/spec/semantics 3, "Static and dynamic"): all of them, and those of each endpoint whose
// queries led to them. Both counts have a bound, so that the names of one endpoint cannot use up the identities of the others. Endpoint 0
// stands for changes without a query, which have no bound per endpoint.

export class DynamicBudget {
  readonly #max: number
  readonly #perEndpointMax: number
  readonly #byEndpoint = new Map<number, number>()
  #used = 0

  constructor(options: { readonly max: number; readonly perEndpointMax: number }) {
    this.#max = options.max
    this.#perEndpointMax = options.perEndpointMax
  }

  get used(): number {
    return this.#used
  }

  /** The number of dynamic identities of the endpoint that has the most. */
  get most(): number {
    let most = 0
    for (const count of this.#byEndpoint.values()) most = Math.max(most, count)
    return most
  }

  /** Returns the endpoints that are at their bound. */
  *exhausted(): Iterable<number> {
    for (const [endpoint, count] of this.#byEndpoint) {
      if (count >= this.#perEndpointMax) yield endpoint
    }
  }

  usedBy(endpoint: number): number {
    return this.#byEndpoint.get(endpoint) ?? 0
  }

  hasRoom(endpoint: number): boolean {
    return this.#used < this.#max && this.usedBy(endpoint) < this.#perEndpointMax
  }

  take(endpoint: number): void {
    this.#used++
    if (endpoint !== 0) this.#byEndpoint.set(endpoint, this.usedBy(endpoint) + 1)
  }

  giveBack(endpoint: number): void {
    this.#used--
    if (endpoint === 0) return
    const left = this.usedBy(endpoint) - 1
    if (left === 0) this.#byEndpoint.delete(endpoint)
    else this.#byEndpoint.set(endpoint, left)
  }
}
