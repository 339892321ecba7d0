// PairColumns holds the pairs that were read from files: for each pair the values of its last records, and where its name and address are
// in a file. Row numbers are valid within one run of records, so each run begins with an empty `#slotOf`. Pairs of earlier runs stay as
// they are. The words of a pair are adjacent, because they are read together. A pair needs 28 octets, beside the files. `free` releases
// both.

import type { SavedPairs } from '../../restore/state-port.ts'
import type { PairPlace } from './record-reader.ts'

/** The estimated length of a record with a short name. It gives a first size of the table, which then is seldom copied to grow. */
const PAIR_OCTETS = 40

/** The words of a pair, by their index. */
const ENDPOINT = 0
const UNTIL = 1
const GRACE = 2
const ADDRESS_AT = 3
const NAME_AT = 4
/** The number of the file in the upper 16 bits, then the length of the name, then the family. Family 0: the pair was removed. */
const SHAPE = 5
/** The number of words of a pair. */
const WORDS = 6

const FILE_SHIFT = 16
const LENGTH_SHIFT = 8
const OCTET = 0xff
const FAMILY_MASK = OCTET

export class PairColumns {
  /** The contents of the files that were read. */
  readonly #files: Uint8Array[] = []
  #slotOf = new Int32Array(1024)
  #count = 1
  #words = new Int32Array(1024 * WORDS)

  /** How many slots were given to pairs. Slots of removed pairs are counted too. */
  get count(): number {
    return this.#count - 1
  }

  /** Begins a file with the content `octets`. Makes room for as many pairs as the file can have, at most `bound`. */
  beginFile(octets: Uint8Array, bound: number): void {
    this.#files.push(octets)
    const size = 1 + Math.min(bound, this.count + Math.ceil(octets.length / PAIR_OCTETS))
    if (size * WORDS > this.#words.length) this.#words = grown(this.#words, size * WORDS)
  }

  /** Begins a new run: the next records use row numbers with another meaning. */
  beginRun(): void {
    this.#slotOf.fill(0)
  }

  /** Sets a pair. `until`: its end in seconds since this boot. Returns false if the pair is new and there are `bound` pairs already. */
  set(place: PairPlace, until: number, bound: number): boolean {
    const { row } = place
    if (row >= this.#slotOf.length) this.#slotOf = grown(this.#slotOf, row + 1)
    let slot = this.#slotOf[row]!
    if (slot === 0) {
      if (this.count >= bound) return false
      slot = this.#count++
      this.#slotOf[row] = slot
      if (this.#words.length < this.#count * WORDS) this.#words = grown(this.#words, 0)
    }
    const words = this.#words
    const at = slot * WORDS
    words[at + ENDPOINT] = place.endpoint
    words[at + UNTIL] = until
    words[at + GRACE] = place.grace
    words[at + ADDRESS_AT] = place.addressAt
    words[at + NAME_AT] = place.nameAt
    const file = this.#files.length - 1
    words[at + SHAPE] = (file << FILE_SHIFT) | (place.nameLength << LENGTH_SHIFT) | place.family
    return true
  }

  /** Sets the end of a pair. Returns false if no pair of this run has the row. */
  setUntil(row: number, until: number): boolean {
    const at = (this.#slotOf[row] ?? 0) * WORDS
    if (isGone(this.#words, at)) return false
    this.#words[at + UNTIL] = until
    return true
  }

  remove(row: number): boolean {
    const at = (this.#slotOf[row] ?? 0) * WORDS
    if (isGone(this.#words, at)) return false
    this.#words[at + SHAPE] = 0
    return true
  }

  /** Returns the pairs that were not removed, at most `bound`. No pair can be set after this. */
  pairs(bound: number): SavedPairs {
    const count = this.#closeUp(bound)
    return {
      count,
      endpoint: (row) => this.#words[row * WORDS + ENDPOINT]!,
      until: (row) => this.#words[row * WORDS + UNTIL]!,
      grace: (row) => this.#words[row * WORDS + GRACE]!,
      family: (row) => ((this.#words[row * WORDS + SHAPE]! & FAMILY_MASK) === 4 ? 4 : 6),
      octets: (row) => this.#files[this.#words[row * WORDS + SHAPE]! >>> FILE_SHIFT]!,
      addressAt: (row) => this.#words[row * WORDS + ADDRESS_AT]!,
      nameAt: (row) => this.#words[row * WORDS + NAME_AT]!,
      nameLength: (row) => (this.#words[row * WORDS + SHAPE]! >>> LENGTH_SHIFT) & OCTET,
      free: () => this.#free(),
    }
  }
  /** Moves the pairs that were not removed to the rows 0, 1, 2 and so on. Returns how many they are, at most `bound`. */
  #closeUp(bound: number): number {
    const words = this.#words
    const most = Math.min(this.count, bound)
    let count = 0
    for (let slot = 1; slot < this.#count && count < most; slot++) {
      const from = slot * WORDS
      if (isGone(words, from)) continue
      const to = count * WORDS
      for (let i = 0; i < WORDS; i++) words[to + i] = words[from + i]!
      count++
    }
    return count
  }

  #free(): void {
    this.#files.length = 0
    this.#slotOf = new Int32Array(0)
    this.#words = new Int32Array(0)
  }
}

function isGone(words: Int32Array, at: number): boolean {
  return (words[at + SHAPE]! & FAMILY_MASK) === 0
}

/** Returns a copy of the values with room for `size` values, and at least twice as many as before. */
function grown(values: Int32Array, size: number): Int32Array<ArrayBuffer> {
  const wider = new Int32Array(Math.max(size, 2 * values.length))
  wider.set(values)
  return wider
}
