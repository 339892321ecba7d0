// One comparison of all addresses that the kernel has: notes the rows that were met and the rows that were written meanwhile, because the
// listing of those may be of before or of after. Two octets a row while it lasts.

import type { Family } from '../../../core/ip.ts'
import { wordAt } from '../netlink/keys.ts'

const ROWS_PER_STEP = 1024

/** The rows that are compared: `AddressTable` has them. */
export interface AddressRows {
  readonly slots: { readonly high: number }
  /** By row; 0: no address is wanted there. */
  readonly identities: Uint32Array
  readonly classes: Uint32Array
  familyOf(row: number): Family
  keyOf(row: number): Uint8Array
  /** The row of a key whose address begins at `offset`; 0 without one. */
  find(scope: number, family: Family, octets: Uint8Array, offset: number): number
}

export class AddressComparison {
  readonly isFresh: Uint8Array
  /** Rows that went, kept until the end so that they are found. */
  readonly gone: number[] = []
  readonly #table: AddressRows
  readonly #isSeen: Uint8Array

  constructor(table: AddressRows, isChanged: Uint8Array) {
    this.#table = table
    this.isFresh = isChanged.slice()
    this.#isSeen = new Uint8Array(isChanged.length)
  }

  /** Whether this is what was written; true where that may be so. */
  meet(family: Family, key: Uint8Array, held: Uint8Array): boolean {
    const { identities, classes } = this.#table
    const row = this.#rowOf(family, key)
    if (this.isFresh[row] === 1) return true
    if (row === 0) return false
    this.#isSeen[row] = 1
    return identities[row] === wordAt(held, 4) && classes[row] === wordAt(held, 12)
  }

  /** Keys of a family that were not met and are wanted; undefined between two steps. */
  *missing(family: Family): Generator<Uint8Array | undefined> {
    const { slots, identities } = this.#table
    for (let row = 1; row <= slots.high; row++) {
      if (row % ROWS_PER_STEP === 0) yield undefined
      if (this.#isSeen[row] === 1 || this.isFresh[row] === 1) continue
      if (identities[row] === 0 || this.#table.familyOf(row) !== family) continue
      yield this.#table.keyOf(row)
    }
  }

  /** Whether a row was written since the comparison began. */
  wasWritten(family: Family, key: Uint8Array): boolean {
    return this.isFresh[this.#rowOf(family, key)] === 1
  }

  #rowOf(family: Family, key: Uint8Array): number {
    return this.#table.find(wordAt(key, 0), family, key, 4)
  }
}
