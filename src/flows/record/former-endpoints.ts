// FormerEndpoints keeps name and labels of endpoints that are gone, as long as the ring has flows of them. It forgets the others when it has
// grown by FORMER_SLACK since it last looked at the ring. So it never has more than twice as many endpoints as the ring has flows, plus
// FORMER_SLACK, however many endpoints come and go. An endpoint's number is never used again, so each flow finds the endpoint of its time.

export interface FormerEndpoint {
  readonly id: number
  readonly name: string
  readonly labels: readonly string[]
}

/** The part of the ring that says which endpoints its flows have. */
export interface RingOfEndpoints {
  readonly oldest: number
  readonly count: number
  endpointOf(number: number): number
}

export const FORMER_SLACK = 1024

export class FormerEndpoints {
  readonly #ring: RingOfEndpoints
  readonly #byId = new Map<number, FormerEndpoint>()
  #nextLook = FORMER_SLACK

  constructor(ring: RingOfEndpoints) {
    this.#ring = ring
  }

  get size(): number {
    return this.#byId.size
  }

  /** Adds an endpoint that is gone. A flow of it can still come, because the kernel reports packets later. */
  add({ id, name, labels }: FormerEndpoint): void {
    if (this.#byId.size >= this.#nextLook) {
      this.#forget()
      this.#nextLook = 2 * this.#byId.size + FORMER_SLACK
    }
    this.#byId.set(id, { id, name, labels })
  }

  get(id: number): FormerEndpoint | undefined {
    return this.#byId.get(id)
  }

  /** True if the ring has a flow of an endpoint with this name that is gone. Reads the whole ring. */
  isNamed(name: string): boolean {
    this.#forget()
    return [...this.#byId.values()].some((endpoint) => endpoint.name === name)
  }

  #forget(): void {
    const used = new Set<number>()
    const { count, oldest } = this.#ring
    for (let number = oldest; number < count; number++) used.add(this.#ring.endpointOf(number))
    for (const id of this.#byId.keys()) if (!used.has(id)) this.#byId.delete(id)
  }
}
