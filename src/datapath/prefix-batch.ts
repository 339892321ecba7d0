// A growable list of (scope, prefix, identity, class) in typed arrays, in the layout of the kernel's LPM trie,
// so that a batch of a thousand addresses is one buffer and costs no object.
//
// Key, 28 octets: prefix length of the whole key (u32, host order), scope (u32, network order; 0 = node),
// family (u32, network order; 4 or 6), address (16 octets, IPv4 in the first 4). 64 bits stand before the
// address. Value, 8 octets: identity (u32, host order), class (u32, host order).

import { endianness } from 'node:os'
import { hashOctets, hashPair } from '../core/tables/keyed-hash.ts'
import { identity, type Identity } from '../core/ids.ts'
import { widthOf, type Family, type Prefix } from '../core/ip.ts'
import { formatPrefix } from '../core/ip-text.ts'
import { sameOctets } from '../dns/wire.ts'

export const PREFIX_KEY_SIZE = 28
export const PREFIX_VALUE_SIZE = 8
/** Bits of scope and family that stand before the address in the key. */
export const PREFIX_KEY_HEAD_BITS = 64

/** The scope of entries that hold for every endpoint. */
export const NODE_SCOPE = 0

const LITTLE = endianness() === 'LE'

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

  /** All entries of kernel-layout keys and values, which belong to the batch from then on. */
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

  /** Kernel-layout keys of the `count` entries; valid until the next `add`. */
  get keys(): Uint8Array {
    return this.#keys.subarray(0, this.#count * PREFIX_KEY_SIZE)
  }

  /** Kernel-layout values of the `count` entries; valid until the next `add`. */
  get values(): Uint8Array {
    return new Uint8Array(this.#values.buffer, 0, this.#count * PREFIX_VALUE_SIZE)
  }

  clear(): void {
    this.#count = 0
  }

  /** `clear`, and the memory is given back. */
  free(): void {
    this.#count = 0
    this.#keys = new Uint8Array(PREFIX_KEY_SIZE)
    this.#keyView = new DataView(this.#keys.buffer)
    this.#values = new Uint32Array(2)
  }

  /** Adds an entry whose 16 address octets stand at `offset`; `scope`: 0, or the endpoint that alone sees it. */
  add(
    family: Family,
    octets: Uint8Array,
    offset: number,
    length: number,
    id: Identity,
    addressClass: Identity,
    scope: number = NODE_SCOPE,
  ): void {
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

  /** Adds the first `count` entries of kernel-layout keys and values. */
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

  /** `prefixHash` of an entry. */
  hash(index: number): number {
    const at = index * PREFIX_KEY_SIZE + 12
    return prefixHash(this.scope(index), this.family(index), this.#keys, at)
  }

  /** Whether the 16 octets at `offset` are the entry's. */
  hasOctets(index: number, octets: Uint8Array, offset: number): boolean {
    return sameOctets(this.#keys, index * PREFIX_KEY_SIZE + 12, octets, offset, 16)
  }

  /** 0: the node's; else the endpoint whose own entry it is. */
  scope(index: number): number {
    return this.#keyView.getUint32(index * PREFIX_KEY_SIZE + 4)
  }

  family(index: number): Family {
    return this.#keyView.getUint32(index * PREFIX_KEY_SIZE + 8) === 4 ? 4 : 6
  }

  /** Length of the prefix itself in bits. */
  length(index: number): number {
    return this.#keyView.getUint32(index * PREFIX_KEY_SIZE, LITTLE) - PREFIX_KEY_HEAD_BITS
  }

  /** The 16 address octets; a view that is valid until the next `add`. */
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

/** Hash of a prefix in a scope, the same for all lengths. The 16 octets at `offset` have zeros behind the length. */
export function prefixHash(
  scope: number,
  family: Family,
  octets: Uint8Array,
  offset: number,
): number {
  return hashPair(hashOctets(octets, offset, widthOf(family) >> 3), scope)
}
