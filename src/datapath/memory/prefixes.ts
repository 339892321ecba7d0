// Prefix -> identity and class in typed arrays, about 40 octets a prefix in use. The arrays have their full
// size from the start: pages that were never touched cost nothing, and nothing ever has to grow. Those of
// endpoints' own scopes, which few configurations have, stand beside them as objects; the bound is for both.

import { identity, type Identity } from '../../core/ids.ts'
import { widthOf, type Family } from '../../core/ip.ts'
import { PrefixIndex } from '../../core/tables/prefix-index.ts'
import { NODE_SCOPE, PREFIX_KEY_SIZE, PrefixBatch } from '../prefix-batch.ts'
import { ScopedPrefixes, type ScopedEntry } from './scoped-prefixes.ts'

/** Octets of a PrefixBatch key that stand before the address. */
const ADDRESS_AT = PREFIX_KEY_SIZE - 16

export class Prefixes {
  readonly #index: PrefixIndex
  readonly #identities: Uint32Array
  readonly #classes: Uint32Array
  /** Prefixes of each length. */
  readonly #lengths = { 4: new Int32Array(33), 6: new Int32Array(129) }
  readonly #scoped = new ScopedPrefixes()
  readonly #capacity: number

  constructor(options: { readonly capacity: number }) {
    this.#capacity = options.capacity
    this.#index = new PrefixIndex(options)
    this.#identities = new Uint32Array(options.capacity + 1)
    this.#classes = new Uint32Array(options.capacity + 1)
  }

  /** Adds or replaces entry `i` of the batch; false when there is no room. */
  upsert(batch: PrefixBatch, i: number): boolean {
    if (batch.scope(i) !== NODE_SCOPE) {
      return this.#scoped.upsert(batch, i, this.#capacity - this.#index.slots.used)
    }
    const [family, length, at] = [
      batch.family(i),
      batch.length(i),
      i * PREFIX_KEY_SIZE + ADDRESS_AT,
    ]
    let row = this.#index.find(family, batch.keys, at, length)
    if (row === 0) {
      if (this.#index.slots.used + this.#scoped.count >= this.#capacity) return false
      row = this.#index.add(family, batch.keys, at, length)
      if (row === 0) return false
      this.#lengths[family][length]!++
    }
    this.#identities[row] = batch.identity(i)
    this.#classes[row] = batch.addressClass(i)
    return true
  }

  remove(batch: PrefixBatch, i: number): void {
    if (batch.scope(i) !== NODE_SCOPE) {
      this.#scoped.remove(batch, i)
      return
    }
    const [family, length, at] = [
      batch.family(i),
      batch.length(i),
      i * PREFIX_KEY_SIZE + ADDRESS_AT,
    ]
    const row = this.#index.find(family, batch.keys, at, length)
    if (row === 0) return
    this.#index.remove(row)
    this.#lengths[family][length]!--
    this.#identities[row] = 0
  }

  /** The row of the longest prefix around an address, 0 when there is none. */
  longest(family: Family, address: Uint8Array): number {
    const lengths = this.#lengths[family]
    for (let length = widthOf(family); length >= 0; length--) {
      if (lengths[length]! === 0) continue
      const row = this.#index.findAround(family, address, 0, length)
      if (row !== 0) return row
    }
    return 0
  }

  /** What an endpoint's own scope says of an address. */
  longestIn(scope: number, family: Family, address: Uint8Array): ScopedEntry | undefined {
    return this.#scoped.longest(scope, family, address)
  }

  identity(row: number): Identity {
    return identity(this.#identities[row]!)
  }

  addressClass(row: number): Identity {
    return identity(this.#classes[row]!)
  }

  dump(): PrefixBatch {
    const batch = new PrefixBatch()
    const { octets, lengths, slots } = this.#index
    for (let row = 1; row <= slots.high; row++) {
      const id = this.identity(row)
      if (id === 0) continue
      const family = this.#index.family(row)
      batch.add(family, octets, row * 16, lengths[row]!, id, this.addressClass(row))
    }
    this.#scoped.addTo(batch)
    return batch
  }
}
