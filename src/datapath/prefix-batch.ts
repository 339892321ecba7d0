// PrefixBatch is a growable list of (scope, prefix, identity, class). It stores them in typed arrays, in the layout of the kernel's LPM
// trie. So a batch of a thousand addresses is one buffer and needs no object per address.
//
// Key, 28 octets: prefix length of the whole key (u32, host order), scope (u32, network order; 0 = node), family (u32, network order; 4 or
// 6), address (16 octets, IPv4 in the first 4). The prefix length includes the 64 bits of scope and family.
// Value, 8 octets: identity (u32, host order), class (u32, host order).

import { endianness } from 'node:os'
import { hashOctets, hashPair } from '../core/tables/keyed-hash.ts'
import { identity, type Identity } from '../core/ids.ts'
import { widthOf, type Family, type Prefix } from '../core/ip.ts'
import { formatPrefix } from '../core/ip-text.ts'
import { sameOctets } from '../dns/wire.ts'

/** In octets. The file header has the layout. */
export const PREFIX_KEY_SIZE = 28
/** In octets. */
export const PREFIX_VALUE_SIZE = 8
/** How many bits of the key stand before the address: scope and family. */
export const PREFIX_KEY_HEAD_BITS = 64

/** The scope of prefixes that apply to every endpoint. */
export const NODE_SCOPE = 0

const LITTLE = endianness() === 'LE'

/** A prefix whose 16 octets begin at `offset` of `octets`. Absent: 0. */
export interface PrefixAt extends Prefix {
  readonly offset?: number
}

/** A prefix object that is filled again for each prefix, so that nothing is allocated. */
export class PrefixView implements PrefixAt {
  family: Family = 4
  octets: Uint8Array = new Uint8Array(16)
  offset = 0
  length = 0

  set(family: Family, octets: Uint8Array, offset: number, length: number): this {
    this.family = family
    this.octets = octets
    this.offset = offset
    this.length = length
    return this
  }
}

export class PrefixBatch {
  #keys: Uint8Array<ArrayBuffer>
  #keyView: DataView
  #values: Uint32Array<ArrayBuffer>
  #count = 0

  constructor(capacity = 64) {
    this.#keys = new Uint8Array(capacity * PREFIX_KEY_SIZE)
    this.#keyView = new DataView(this.#keys.buffer)
    this.#values = new Uint32Array(capacity * 2)
  }

  /** Makes a batch of keys and values in kernel layout. The batch owns both buffers after this call. */
  static of(keys: ArrayBuffer, values: ArrayBuffer): PrefixBatch {
    const batch = new PrefixBatch(1)
    if (keys.byteLength === 0) return batch
    batch.#keys = new Uint8Array(keys)
    batch.#keyView = new DataView(keys)
    batch.#values = new Uint32Array(values)
    batch.#count = keys.byteLength / PREFIX_KEY_SIZE
    return batch
  }

  get count(): number {
    return this.#count
  }

  /** The keys of the `count` entries in kernel layout. The view is valid until the next `add`. */
  get keys(): Uint8Array {
    return this.#keys.subarray(0, this.#count * PREFIX_KEY_SIZE)
  }

  /** The values of the `count` entries in kernel layout. The view is valid until the next `add`. */
  get values(): Uint8Array {
    return new Uint8Array(this.#values.buffer, 0, this.#count * PREFIX_VALUE_SIZE)
  }

  clear(): void {
    this.#count = 0
  }

  /** Removes all entries and gives the memory back. */
  free(): void {
    this.#count = 0
    this.#keys = new Uint8Array(PREFIX_KEY_SIZE)
    this.#keyView = new DataView(this.#keys.buffer)
    this.#values = new Uint32Array(2)
  }

  /** Adds an entry. `scope`: 0 for all endpoints, or the number of the only endpoint that sees the entry. */
  add(prefix: PrefixAt, id: Identity, addressClass: Identity, scope: number = NODE_SCOPE): void {
    const { family, octets, offset = 0, length } = prefix
    const at = this.#count * PREFIX_KEY_SIZE
    if (at === this.#keys.length) this.#grow()
    const view = this.#keyView
    view.setUint32(at, PREFIX_KEY_HEAD_BITS + length, LITTLE)
    view.setUint32(at + 4, scope)
    view.setUint32(at + 8, family)
    for (let i = 0; i < 16; i++) this.#keys[at + 12 + i] = octets[offset + i]!
    this.#values[this.#count * 2] = id
    this.#values[this.#count * 2 + 1] = addressClass
    this.#count++
  }

  /** Adds an entry of another batch. */
  addFrom(batch: PrefixBatch, index: number): void {
    const identity = batch.identity(index)
    this.add(batch.prefix(index), identity, batch.addressClass(index), batch.scope(index))
  }

  /** Adds the first `count` entries of keys and values in kernel layout. */
  addAll(keys: Uint8Array, values: Uint8Array, count: number): void {
    while ((this.#count + count) * PREFIX_KEY_SIZE > this.#keys.length) this.#grow()
    this.#keys.set(keys.subarray(0, count * PREFIX_KEY_SIZE), this.#count * PREFIX_KEY_SIZE)
    const octets = new Uint8Array(this.#values.buffer)
    octets.set(values.subarray(0, count * PREFIX_VALUE_SIZE), this.#count * PREFIX_VALUE_SIZE)
    this.#count += count
  }

  #grow(): void {
    const keys = new Uint8Array(this.#keys.length * 2)
    keys.set(this.#keys)
    const values = new Uint32Array(this.#values.length * 2)
    values.set(this.#values)
    this.#keys = keys
    this.#keyView = new DataView(keys.buffer)
    this.#values = values
  }

  /** Returns the `prefixHash` of an entry. */
  hash(index: number): number {
    const at = index * PREFIX_KEY_SIZE + 12
    return prefixHash(this.scope(index), this.family(index), this.#keys, at)
  }

  /** True if the 16 octets at `offset` are equal to the entry's address octets. */
  hasOctets(index: number, octets: Uint8Array, offset: number): boolean {
    return sameOctets(this.#keys, index * PREFIX_KEY_SIZE + 12, octets, offset, 16)
  }

  /** The scope of an entry: 0 for all endpoints, or the number of the only endpoint that sees the entry. */
  scope(index: number): number {
    return this.#keyView.getUint32(index * PREFIX_KEY_SIZE + 4)
  }

  family(index: number): Family {
    return this.#keyView.getUint32(index * PREFIX_KEY_SIZE + 8) === 4 ? 4 : 6
  }

  /** The length of an entry's prefix in bits, without scope and family. */
  length(index: number): number {
    return this.#keyView.getUint32(index * PREFIX_KEY_SIZE, LITTLE) - PREFIX_KEY_HEAD_BITS
  }

  /** True if the entry is a whole address. */
  isAddress(index: number): boolean {
    const at = index * PREFIX_KEY_SIZE
    // The last octet of the family is 4 or 6.
    const bits = this.#keys[at + 11] === 4 ? 32 : 128
    return this.#keyView.getUint32(at, LITTLE) === PREFIX_KEY_HEAD_BITS + bits
  }

  /** The key of an entry in kernel layout. The view is valid until the next `add`. */
  key(index: number): Uint8Array {
    const at = index * PREFIX_KEY_SIZE
    return this.#keys.subarray(at, at + PREFIX_KEY_SIZE)
  }

  /** The 16 address octets of an entry. The view is valid until the next `add`. */
  octets(index: number): Uint8Array {
    const at = index * PREFIX_KEY_SIZE + 12
    return this.#keys.subarray(at, at + 16)
  }

  identity(index: number): Identity {
    return identity(this.#values[index * 2]!)
  }

  addressClass(index: number): Identity {
    return identity(this.#values[index * 2 + 1]!)
  }

  prefix(index: number): Prefix {
    return {
      family: this.family(index),
      octets: this.octets(index).slice(),
      length: this.length(index),
    }
  }

  format(index: number): string {
    return formatPrefix(this.prefix(index))
  }
}

/** Hashes a prefix in a scope. The length is not part of the hash. The 16 octets begin at `offset`, with zeros behind the prefix length. */
export function prefixHash(
  scope: number,
  family: Family,
  octets: Uint8Array,
  offset: number,
): number {
  return hashPair(hashOctets(octets, offset, widthOf(family) >> 3), scope)
}
