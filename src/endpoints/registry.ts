// The endpoints known, by number, by name and by address. A query's endpoint is the one whose address is
// the longest match of the query's source. Written by endpoint sources through the daemon; the lookup by
// address is on the packet path and allocates nothing.

import { endpointId, type EndpointId, type Generation } from '../core/ids.ts'
import { widthOf, type Family, type Prefix } from '../core/ip.ts'
import { PrefixIndex } from '../core/tables/prefix-index.ts'

export type EndpointHook =
  | { readonly kind: 'interface'; readonly name: string; readonly side: 'ingress' | 'egress' }
  | { readonly kind: 'cgroup'; readonly path: string }
  | { readonly kind: 'none' }

export interface Endpoint {
  readonly id: EndpointId
  readonly generation: Generation
  readonly name: string
  readonly addresses: readonly Prefix[]
  /** `source:key=value` texts. */
  readonly labels: readonly string[]
  readonly hook: EndpointHook
  readonly audit: boolean
}

export class EndpointRegistry {
  readonly #byId = new Map<EndpointId, Endpoint>()
  readonly #byName = new Map<string, Endpoint>()
  readonly #index: PrefixIndex
  #shared = 0
  readonly #owners: (Endpoint | undefined)[] = []
  readonly #lengths = { 4: new Int32Array(33), 6: new Int32Array(129) }

  constructor(options: { readonly addressesMax: number }) {
    this.#index = new PrefixIndex({ capacity: options.addressesMax })
  }

  get size(): number {
    return this.#byId.size
  }

  /** How many addresses still fit. */
  get room(): number {
    return this.#index.slots.capacity - this.#index.slots.used
  }

  get(id: EndpointId): Endpoint | undefined {
    return this.#byId.get(id)
  }

  /** As `get`, for a number that came out of a table. */
  byNumber(id: number): Endpoint | undefined {
    return this.#byId.get(endpointId(id))
  }

  /** How many endpoints share the host's addresses (cgroups). */
  get sharedCount(): number {
    return this.#shared
  }

  byName(name: string): Endpoint | undefined {
    return this.#byName.get(name)
  }

  [Symbol.iterator](): Iterator<Endpoint> {
    return this.#byId.values()
  }

  /** The endpoint that has the address of 16 octets at `offset`. */
  byAddress(family: Family, octets: Uint8Array, offset: number): Endpoint | undefined {
    const lengths = this.#lengths[family]
    for (let length = widthOf(family); length >= 0; length--) {
      if (lengths[length] === 0) continue
      const row = this.#index.findAround(family, octets, offset, length)
      if (row !== 0) return this.#owners[row]
    }
    return undefined
  }

  /** Adds an endpoint whose name and addresses are not taken. */
  add(endpoint: Endpoint): void {
    this.#byId.set(endpoint.id, endpoint)
    this.#byName.set(endpoint.name, endpoint)
    if (endpoint.hook.kind === 'cgroup') this.#shared++
    for (const { family, octets, length } of endpoint.addresses) {
      const row = this.#index.add(family, octets, 0, length)
      if (row === 0) continue
      this.#owners[row] = endpoint
      this.#lengths[family][length]!++
    }
  }

  remove(id: EndpointId): void {
    const endpoint = this.#byId.get(id)
    if (endpoint === undefined) return
    this.#byId.delete(id)
    this.#byName.delete(endpoint.name)
    if (endpoint.hook.kind === 'cgroup') this.#shared--
    for (const { family, octets, length } of endpoint.addresses) {
      const row = this.#index.find(family, octets, 0, length)
      if (row === 0) continue
      this.#owners[row] = undefined
      this.#lengths[family][length]!--
      this.#index.remove(row)
    }
  }
}
