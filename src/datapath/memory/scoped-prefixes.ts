// Prefixes of endpoints' own scopes, as objects: scope -> prefix -> identity and class.

import type { Identity } from '../../core/ids.ts'
import { formatPrefix, truncatePrefix, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import type { PrefixBatch } from '../prefix-batch.ts'

export interface ScopedEntry {
  readonly identity: Identity
  readonly addressClass: Identity
}

type Scope = Map<string, ScopedEntry & { readonly prefix: Prefix }>

export class ScopedPrefixes {
  readonly #scopes = new Map<number, Scope>()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** Adds or replaces entry `i` of the batch; false when it is new and there is room for no more than are there. */
  upsert(batch: PrefixBatch, i: number, room: number): boolean {
    const scope: Scope = this.#scopes.get(batch.scope(i)) ?? new Map()
    const key = batch.format(i)
    if (!scope.has(key)) {
      if (this.#count >= room) return false
      this.#count++
    }
    const [identity, addressClass] = [batch.identity(i), batch.addressClass(i)]
    scope.set(key, { identity, addressClass, prefix: batch.prefix(i) })
    this.#scopes.set(batch.scope(i), scope)
    return true
  }

  remove(batch: PrefixBatch, i: number): void {
    const scope = this.#scopes.get(batch.scope(i))
    if (scope?.delete(batch.format(i)) !== true) return
    this.#count--
    if (scope.size === 0) this.#scopes.delete(batch.scope(i))
  }

  longest(id: number, family: Family, address: Uint8Array): ScopedEntry | undefined {
    const scope = this.#scopes.get(id)
    if (scope === undefined) return undefined
    const whole = { family, octets: address, length: widthOf(family) }
    for (let length = whole.length; length >= 0; length--) {
      const found = scope.get(formatPrefix(truncatePrefix(whole, length)))
      if (found !== undefined) return found
    }
    return undefined
  }

  addTo(batch: PrefixBatch): void {
    for (const [id, scope] of this.#scopes) {
      for (const { prefix, identity, addressClass } of scope.values()) {
        batch.add(prefix.family, prefix.octets, 0, prefix.length, identity, addressClass, id)
      }
    }
  }
}
