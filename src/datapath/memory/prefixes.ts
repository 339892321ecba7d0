// Prefixes stores the identity and class of each prefix of the memory datapath. A prefix of the node's scope takes about 40 octets in typed
// arrays. The arrays have their full size from the start, because memory pages that were never touched cost nothing. A prefix of an
// endpoint's own scope is an object, because few configurations have such prefixes. One bound limits both kinds together.

import { identity, type Identity } from '../../core/ids.ts'
import { formatPrefix, truncatePrefix, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import { PrefixIndex } from '../../core/tables/prefix-index.ts'
import { NODE_SCOPE, PREFIX_KEY_SIZE, PrefixBatch } from '../prefix-batch.ts'

/** Where the address begins in a PrefixBatch key. */
const ADDRESS_AT = PREFIX_KEY_SIZE - 16

/** The value of one prefix entry. */
export interface PrefixValue {
  readonly identity: Identity
  readonly addressClass: Identity
}

type Scope = Map<string, PrefixValue & { readonly prefix: Prefix }>

export class Prefixes {
  readonly #index: PrefixIndex
  readonly #identities: Uint32Array
  readonly #classes: Uint32Array
  /** Prefixes of endpoints' own scopes: scope -> prefix as text -> value. */
  readonly #scopes = new Map<number, Scope>()
  #scopedCount = 0
  readonly #capacity: number

  constructor(options: { readonly capacity: number }) {
    this.#capacity = options.capacity
    this.#index = new PrefixIndex(options)
    this.#identities = new Uint32Array(options.capacity + 1)
    this.#classes = new Uint32Array(options.capacity + 1)
  }

  /** Adds or replaces entry `i` of the batch. Returns false if there is no room. */
  upsert(batch: PrefixBatch, i: number): boolean {
    if (batch.scope(i) !== NODE_SCOPE) return this.#upsertScoped(batch, i)
    let row = this.#find(batch, i)
    if (row === 0) {
      if (this.#isFull) return false
      row = this.#index.add(batch.family(i), batch.keys, addressAt(i), batch.length(i))
      if (row === 0) return false
    }
    this.#identities[row] = batch.identity(i)
    this.#classes[row] = batch.addressClass(i)
    return true
  }

  remove(batch: PrefixBatch, i: number): void {
    if (batch.scope(i) !== NODE_SCOPE) {
      this.#removeScoped(batch, i)
      return
    }
    const row = this.#find(batch, i)
    if (row === 0) return
    this.#index.remove(row)
    this.#identities[row] = 0
  }

  /** Returns the value of the prefix of exactly `length` bits that contains an address, in one scope; undefined if there is none. */
  around(
    scope: number,
    family: Family,
    address: Uint8Array,
    length: number,
  ): PrefixValue | undefined {
    if (scope !== NODE_SCOPE) {
      const whole = { family, octets: address, length: widthOf(family) }
      return this.#scopes.get(scope)?.get(formatPrefix(truncatePrefix(whole, length)))
    }
    const row = this.#index.findAround(family, address, 0, length)
    return row === 0 ? undefined : this.#value(row)
  }

  dump(): PrefixBatch {
    const batch = new PrefixBatch()
    const { octets, lengths, slots } = this.#index
    for (let row = 1; row <= slots.high; row++) {
      const { identity: id, addressClass } = this.#value(row)
      if (id === 0) continue
      const family = this.#index.family(row)
      batch.add({ family, octets, offset: row * 16, length: lengths[row]! }, id, addressClass)
    }
    for (const [scope, values] of this.#scopes) {
      for (const { prefix, identity: id, addressClass } of values.values()) {
        batch.add(prefix, id, addressClass, scope)
      }
    }
    return batch
  }

  get #isFull(): boolean {
    return this.#index.slots.used + this.#scopedCount >= this.#capacity
  }

  #find(batch: PrefixBatch, i: number): number {
    return this.#index.find(batch.family(i), batch.keys, addressAt(i), batch.length(i))
  }

  #value(row: number): PrefixValue {
    return {
      identity: identity(this.#identities[row]!),
      addressClass: identity(this.#classes[row]!),
    }
  }

  #upsertScoped(batch: PrefixBatch, i: number): boolean {
    const scope: Scope = this.#scopes.get(batch.scope(i)) ?? new Map()
    const key = batch.format(i)
    if (!scope.has(key)) {
      if (this.#isFull) return false
      this.#scopedCount++
    }
    const value = { identity: batch.identity(i), addressClass: batch.addressClass(i) }
    scope.set(key, { ...value, prefix: batch.prefix(i) })
    this.#scopes.set(batch.scope(i), scope)
    return true
  }

  #removeScoped(batch: PrefixBatch, i: number): void {
    const scope = this.#scopes.get(batch.scope(i))
    if (scope?.delete(batch.format(i)) !== true) return
    this.#scopedCount--
    if (scope.size === 0) this.#scopes.delete(batch.scope(i))
  }
}

function addressAt(i: number): number {
  return i * PREFIX_KEY_SIZE + ADDRESS_AT
}
