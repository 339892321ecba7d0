// Pairs read from files, as columns that grow: where each one's latest whole record stands, and what it says. A row of
// a record means something within one run of records only, so each run begins with an empty `#slotOf`; pairs of the
// run before stay as they are. About 36 octets a pair beside the files themselves, given back by `free`.

import type { SavedPairs } from '../control/saved-state.ts'
import type { PairPlace } from './record-visitor.ts'

/** A pair with a short name: an estimate, so that columns of many pairs need not be copied as they grow. */
const PAIR_OCTETS = 40

export class PairColumns {
  /** Octets of the files that places point into. */
  readonly #files: Uint8Array[] = []
  #slotOf = new Int32Array(1024)
  #count = 1
  #file = new Uint16Array(1024)
  #endpoint = new Int32Array(1024)
  #until = new Int32Array(1024)
  #grace = new Int32Array(1024)
  /** 0 when the pair is gone. */
  #family = new Uint8Array(1024)
  #nameLength = new Uint8Array(1024)
  #addressAt = new Uint32Array(1024)
  #nameAt = new Uint32Array(1024)

  /** Slots in use or once in use. */
  get count(): number {
    return this.#count - 1
  }

  /** What comes now stands in `octets`; room is made for as many pairs as it may hold, at most `bound`. */
  beginFile(octets: Uint8Array, bound: number): void {
    this.#files.push(octets)
    const size = 1 + Math.min(bound, this.count + Math.ceil(octets.length / PAIR_OCTETS))
    if (size > this.#until.length) this.#grow(size)
  }

  /** From here on rows have another meaning. */
  beginRun(): void {
    this.#slotOf.fill(0)
  }

  /** `until` in the time of the reader. False when there is no room for another pair below `bound`. */
  set(place: PairPlace, until: number, bound: number): boolean {
    const { row } = place
    if (row >= this.#slotOf.length) this.#slotOf = grown(Int32Array, this.#slotOf, row + 1)
    let slot = this.#slotOf[row]!
    if (slot === 0) {
      if (this.count >= bound) return false
      slot = this.#count++
      this.#slotOf[row] = slot
      if (slot === this.#until.length) this.#grow(slot + 1)
    }
    this.#file[slot] = this.#files.length - 1
    this.#endpoint[slot] = place.endpoint
    this.#until[slot] = until
    this.#grace[slot] = place.grace
    this.#family[slot] = place.family
    this.#nameLength[slot] = place.nameLength
    this.#addressAt[slot] = place.addressAt
    this.#nameAt[slot] = place.nameAt
    return true
  }

  /** False when no pair has the row. */
  setUntil(row: number, until: number): boolean {
    const slot = this.#slotOf[row] ?? 0
    if (this.#family[slot] === 0) return false
    this.#until[slot] = until
    return true
  }

  remove(row: number): boolean {
    const slot = this.#slotOf[row] ?? 0
    if (this.#family[slot] === 0) return false
    this.#family[slot] = 0
    return true
  }

  /** The pairs that are not gone, at most `bound`; nothing is set after that. */
  pairs(bound: number): SavedPairs {
    let rows = new Int32Array(Math.min(this.count, bound))
    let count = 0
    for (let slot = 1; slot < this.#count && count < rows.length; slot++) {
      if (this.#family[slot] !== 0) rows[count++] = slot
    }
    return {
      count,
      endpoint: (row) => this.#endpoint[rows[row]!]!,
      until: (row) => this.#until[rows[row]!]!,
      grace: (row) => this.#grace[rows[row]!]!,
      family: (row) => (this.#family[rows[row]!] === 4 ? 4 : 6),
      octets: (row) => this.#files[this.#file[rows[row]!]!]!,
      addressAt: (row) => this.#addressAt[rows[row]!]!,
      nameAt: (row) => this.#nameAt[rows[row]!]!,
      nameLength: (row) => this.#nameLength[rows[row]!]!,
      free: () => {
        rows = new Int32Array(0)
        this.#free()
      },
    }
  }

  #free(): void {
    this.#files.length = 0
    this.#slotOf = new Int32Array(0)
    this.#file = new Uint16Array(0)
    this.#endpoint = new Int32Array(0)
    this.#until = new Int32Array(0)
    this.#grace = new Int32Array(0)
    this.#family = new Uint8Array(0)
    this.#nameLength = new Uint8Array(0)
    this.#addressAt = new Uint32Array(0)
    this.#nameAt = new Uint32Array(0)
  }

  #grow(size: number): void {
    this.#file = grown(Uint16Array, this.#file, size)
    this.#endpoint = grown(Int32Array, this.#endpoint, size)
    this.#until = grown(Int32Array, this.#until, size)
    this.#grace = grown(Int32Array, this.#grace, size)
    this.#family = grown(Uint8Array, this.#family, size)
    this.#nameLength = grown(Uint8Array, this.#nameLength, size)
    this.#addressAt = grown(Uint32Array, this.#addressAt, size)
    this.#nameAt = grown(Uint32Array, this.#nameAt, size)
  }
}

/** The same values with room for `size`, and at least twice as much as before. */
function grown<Values extends { readonly length: number; set(values: Values): void }>(
  Column: new (length: number) => Values,
  values: Values,
  size: number,
): Values {
  const wider = new Column(Math.max(size, 2 * values.length))
  wider.set(values)
  return wider
}
