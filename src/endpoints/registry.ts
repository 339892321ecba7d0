// EndpointRegistry finds known endpoints by number, name and address. A query belongs to the endpoint whose address or prefix is the
// longest match of the query's source address. Endpoint sources write to the registry through the daemon. The lookup by address runs on
// the packet path and allocates nothing.

import { endpointId, type EndpointId, type Generation } from '../core/ids.ts'
import { widthOf, type Family, type Prefix } from '../core/ip.ts'
import { PrefixIndex } from '../core/tables/prefix-index.ts'

export type EndpointHook =
  | { readonly kind: 'interface'; readonly name: string; readonly side: 'ingress' | 'egress' }
  | { readonly kind: 'cgroup'; readonly path: string }
  | { readonly kind: 'none' }

/** A known endpoint. Its number and generation are never used again for another endpoint. */
export interface Endpoint {
  readonly id: EndpointId
  readonly generation: Generation
  readonly name: string
  readonly addresses: readonly Prefix[]
  /** The labels as `source:key=value`. */
  readonly labels: readonly string[]
  readonly hook: EndpointHook
  readonly audit: boolean
  /** The identity that a cluster gave the workload. */
  readonly uid?: string | undefined
  /** Where its source describes it: the path of a file, or the name of a cluster's object. */
  readonly origin?: string | undefined
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

  /** The number of addresses that still fit into the registry. */
  get room(): number {
    return this.#index.slots.capacity - this.#index.slots.used
  }

  get(id: EndpointId): Endpoint | undefined {
    return this.#byId.get(id)
  }

  /** Returns the same as `get`, for a number from a table. */
  byNumber(id: number): Endpoint | undefined {
    return this.#byId.get(endpointId(id))
  }

  /** The number of endpoints that are cgroups, which share the host's addresses. */
  get sharedCount(): number {
    return this.#shared
  }

  byName(name: string): Endpoint | undefined {
    return this.#byName.get(name)
  }

  ids(): Set<EndpointId> {
    return new Set(this.#byId.keys())
  }

  [Symbol.iterator](): Iterator<Endpoint> {
    return this.#byId.values()
  }

  /** Returns the endpoint of the address whose 16 octets begin at `offset`; undefined if none has it. */
  byAddress(family: Family, octets: Uint8Array, offset: number): Endpoint | undefined {
    const lengths = this.#lengths[family]
    for (let length = widthOf(family); length >= 0; length--) {
      if (lengths[length] === 0) continue
      const row = this.#index.findAround(family, octets, offset, length)
      if (row !== 0) return this.#owners[row]
    }
    return undefined
  }

  /** Adds an endpoint. No other endpoint must have its name or one of its addresses. */
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
