// Prefix entries that the kernel carries from an earlier daemon, found by their key until they are taken. A component that wants the very
// entry takes it without a write; one that wants another entry for the prefix overwrites it. Entries that stay untaken are not wanted by the
// present configuration and names (restore/restart.ts). 46 octets an entry, freed with the last.

import { HashIndex } from '../core/tables/hash-index.ts'
import type { Identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { prefixHash, type PrefixBatch } from './prefix-batch.ts'

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

  /** Entries that were not taken. */
  get left(): number {
    return this.#left
  }

  isTaken(entry: number): boolean {
    return this.#left === 0 || this.#isTaken[entry] === 1
  }

  /** Removes an entry that was not taken; with the last of them the batch is empty. */
  drop(entry: number): void {
    this.#isTaken[entry] = 1
    this.#left--
    if (this.#left === 0) this.#free()
  }

  /**
   * Takes the entry of a prefix whose 16 octets stand at `offset`; scope 0 is the node's. True: the kernel has it with
   * this identity and class. A caller asks once for each prefix, because later changes are not known here.
   */
  take(
    scope: number,
    family: Family,
    octets: Uint8Array,
    offset: number,
    length: number,
    id: Identity,
    addressClass: Identity,
  ): boolean {
    if (this.#left === 0) return false
    const entry = this.find(scope, family, octets, offset, length)
    if (entry < 0) return false
    const { batch } = this
    const isEqual = batch.identity(entry) === id && batch.addressClass(entry) === addressClass
    this.drop(entry)
    return isEqual
  }

  /** The untaken entry of a prefix, negative when there is none. */
  find(scope: number, family: Family, octets: Uint8Array, offset: number, length: number): number {
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

  #free(): void {
    this.batch.free()
    this.#isTaken = new Uint8Array(0)
    this.#index = new HashIndex(0, { hashOfRow: () => 0 })
  }
}
