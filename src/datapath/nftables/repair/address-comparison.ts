// AddressComparison compares all addresses in the kernel with the wanted addresses, once. It records which rows were met. It also
// records which rows were written during the comparison, because the listing can show such a row as it was before or after the
// write. It costs two octets for each row while it lasts.

import type { Family } from '../../../core/ip.ts'
import { wordAt } from '../netlink/keys.ts'

const ROWS_PER_STEP = 1024

/** The rows to compare. `AddressTable` implements them. */
export interface AddressRows {
  readonly slots: { readonly high: number }
  /** By row; 0 means that no address is wanted. */
  readonly identities: Uint32Array
  readonly classes: Uint32Array
  familyOf(row: number): Family
  keyOf(row: number): Uint8Array
  /** The row of a key whose address begins at `offset`, or 0 if there is none. */
  find(scope: number, family: Family, octets: Uint8Array, offset: number): number
}

export class AddressComparison {
  readonly isFresh: Uint8Array
  /** Rows that were removed during the comparison. They are kept until its end, so that they can be found. */
  readonly gone: number[] = []
  readonly #table: AddressRows
  readonly #isSeen: Uint8Array

  constructor(table: AddressRows, isChanged: Uint8Array) {
    this.#table = table
    this.isFresh = isChanged.slice()
    this.#isSeen = new Uint8Array(isChanged.length)
  }

  /** Returns true if the element is what was written, or if that cannot be known. */
  meet(family: Family, key: Uint8Array, held: Uint8Array): boolean {
    const { identities, classes } = this.#table
    const row = this.#rowOf(family, key)
    if (this.isFresh[row] === 1) return true
    if (row === 0) return false
    this.#isSeen[row] = 1
    return identities[row] === wordAt(held, 4) && classes[row] === wordAt(held, 12)
  }

  /** The wanted keys of a family that were not met. Yields undefined as a pause. */
  *missing(family: Family): Generator<Uint8Array | undefined> {
    const { slots, identities } = this.#table
    for (let row = 1; row <= slots.high; row++) {
      if (row % ROWS_PER_STEP === 0) yield undefined
      if (this.#isSeen[row] === 1 || this.isFresh[row] === 1) continue
      if (identities[row] === 0 || this.#table.familyOf(row) !== family) continue
      yield this.#table.keyOf(row)
    }
  }

  /** True if a row was written since the comparison began. */
  wasWritten(family: Family, key: Uint8Array): boolean {
    return this.isFresh[this.#rowOf(family, key)] === 1
  }

  #rowOf(family: Family, key: Uint8Array): number {
    return this.#table.find(wordAt(key, 0), family, key, 4)
  }
}
