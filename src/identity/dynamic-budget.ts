// The budget of identities that answers may make (docs/spec/semantics 3, "Static and dynamic"): in all, and for each endpoint whose
// query taught them. So the names of one endpoint cannot use up the numbers of all others. Endpoint 0 stands for changes without
// a query.

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

  /** The most identities of one endpoint. */
  get most(): number {
    let most = 0
    for (const count of this.#byEndpoint.values()) most = Math.max(most, count)
    return most
  }

  /** Endpoints that have used up their share. */
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
