// InheritedEntries finds prefix entries that an earlier daemon left in the kernel, by their key. When a component first wants an entry for
// a prefix, it takes the inherited entry. If the inherited entry is equal, the component saves a write; else it overwrites the entry.
// An entry that no component takes is wanted neither by the configuration nor by a name (restore/restart.ts). An entry costs 46 octets. The
// memory is freed with the last entry.

import { HashIndex } from '../core/tables/hash-index.ts'
import type { Identity } from '../core/ids.ts'
import { prefixHash, type PrefixAt, type PrefixBatch } from './prefix-batch.ts'

export class InheritedEntries {
  readonly batch: PrefixBatch
  #index: HashIndex
  #isTaken: Uint8Array
  #left: number

  constructor(batch: PrefixBatch) {
    this.batch = batch
    this.#left = batch.count
    this.#isTaken = new Uint8Array(batch.count)
    this.#index = new HashIndex(batch.count, { hashOfRow: (row) => batch.hash(row - 1) })
    for (let i = 0; i < batch.count; i++) this.#index.insert(batch.hash(i), i + 1)
  }

  /** How many entries no row of the IPCache has taken. */
  get left(): number {
    return this.#left
  }

  isTaken(entry: number): boolean {
    return this.#left === 0 || this.#isTaken[entry] === 1
  }

  /** Removes an entry that no row has taken. After the last one, the batch is empty. */
  drop(entry: number): void {
    this.#isTaken[entry] = 1
    this.#left--
    if (this.#left === 0) this.#free()
  }

  /**
   * Takes the entry of a prefix. Scope 0 is the node's. Returns true if the kernel has the entry with this identity and class. Call this
   * once for each prefix, because this object does not learn of later changes.
   */
  take(scope: number, prefix: PrefixAt, id: Identity, addressClass: Identity): boolean {
    if (this.#left === 0) return false
    const entry = this.find(scope, prefix)
    if (entry < 0) return false
    const { batch } = this
    const isEqual = batch.identity(entry) === id && batch.addressClass(entry) === addressClass
    this.drop(entry)
    return isEqual
  }

  /** Returns the index of the entry of a prefix that no component has taken; negative if there is none. */
  find(scope: number, { family, octets, offset = 0, length }: PrefixAt): number {
    const { batch } = this
    const hash = prefixHash(scope, family, octets, offset)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const entry = this.#index.row(at) - 1
      if (entry < 0) return -1
      if (this.#isTaken[entry] === 1 || batch.length(entry) !== length) continue
      if (batch.scope(entry) !== scope || batch.family(entry) !== family) continue
      if (batch.hasOctets(entry, octets, offset)) return entry
    }
  }

  /** True if entry `i` of `held` is an inherited entry that no component has taken, and is unchanged. */
  has(held: PrefixBatch, i: number): boolean {
    const entry = this.find(held.scope(i), held.prefix(i))
    if (entry < 0) return false
    const { batch } = this
    return (
      batch.identity(entry) === held.identity(i) &&
      batch.addressClass(entry) === held.addressClass(i)
    )
  }

  #free(): void {
    this.batch.free()
    this.#isTaken = new Uint8Array(0)
    this.#index = new HashIndex(0, { hashOfRow: () => 0 })
  }
}
