// Policies stores the policy entries of the memory datapath, by endpoint and identity.

import type { EndpointId, Identity } from '../../core/ids.ts'
import type { PolicyEntry, PolicyKey } from '../entries.ts'
import { covers, specificity } from '../verdict.ts'

export class Policies {
  readonly #capacity: number
  readonly #entries = new Map<EndpointId, Map<Identity, PolicyEntry[]>>()
  #count = 0

  constructor(options: { readonly capacity: number }) {
    this.#capacity = options.capacity
  }

  /** Adds or replaces an entry. Returns false if there is no room. */
  upsert(entry: PolicyEntry): boolean {
    const list = this.#entries.get(entry.endpoint)?.get(entry.identity) ?? []
    const at = list.findIndex((other) => sameKey(other, entry))
    if (at >= 0) {
      list[at] = entry
      return true
    }
    if (this.#count === this.#capacity) return false
    this.#count++
    list.push(entry)
    const identities = this.#entries.get(entry.endpoint) ?? new Map<Identity, PolicyEntry[]>()
    this.#entries.set(entry.endpoint, identities.set(entry.identity, list))
    return true
  }

  remove(key: PolicyKey): void {
    const identities = this.#entries.get(key.endpoint)
    const list = identities?.get(key.identity)
    const at = list?.findIndex((other) => sameKey(other, key)) ?? -1
    if (identities === undefined || list === undefined || at < 0) return
    list.splice(at, 1)
    this.#count--
    if (list.length === 0) identities.delete(key.identity)
    if (identities.size === 0) this.#entries.delete(key.endpoint)
  }

  entriesOf(endpoint: EndpointId, identity: Identity): readonly PolicyEntry[] {
    return this.#entries.get(endpoint)?.get(identity) ?? []
  }

  dump(): readonly PolicyEntry[] {
    return [...this.#entries.values()].flatMap((identities) => [...identities.values()].flat())
  }
}

function sameKey(a: PolicyKey, b: PolicyKey): boolean {
  const isSame = a.protocol === b.protocol && specificity(a) === specificity(b)
  return isSame && covers(a, b.protocol, b.port)
}
