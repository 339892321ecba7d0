// Pairs read from files: the place and the values of the latest whole record of each. Rows are valid within one run of records, so
// each run begins with an empty `#slotOf`, and pairs of the run before stay as they are. The words of a pair are adjacent, because
// most are read together. Cost: 28 octets a pair beside the files; `free` releases them.

import type { SavedPairs } from '../../restore/state-port.ts'
import type { PairPlace } from './record-reader.ts'

/** A pair with a short name: an estimate, so that tables of many pairs need not be copied as they grow. */
const PAIR_OCTETS = 40

/** Words of a pair, and their number. */
const ENDPOINT = 0
const UNTIL = 1
const GRACE = 2
const ADDRESS_AT = 3
const NAME_AT = 4
/** File in the upper half, then length of the name, then family: 0 when the pair is gone. */
const SHAPE = 5
const WORDS = 6

const FILE_SHIFT = 16
const LENGTH_SHIFT = 8
const OCTET = 0xff
const FAMILY_MASK = OCTET

export class PairColumns {
  /** Octets of the files that places point into. */
  readonly #files: Uint8Array[] = []
  #slotOf = new Int32Array(1024)
  #count = 1
  #words = new Int32Array(1024 * WORDS)

  /** Slots in use or once in use. */
  get count(): number {
    return this.#count - 1
  }

  /** What comes now stands in `octets`; room is made for as many pairs as it may hold, at most `bound`. */
  beginFile(octets: Uint8Array, bound: number): void {
    this.#files.push(octets)
    const size = 1 + Math.min(bound, this.count + Math.ceil(octets.length / PAIR_OCTETS))
    if (size * WORDS > this.#words.length) this.#words = grown(this.#words, size * WORDS)
  }

  /** From here on rows have another meaning. */
  beginRun(): void {
    this.#slotOf.fill(0)
  }

  /** `until` in the time of the reader. False when there is no room for another pair below `bound`. */
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

  /** False when no pair has the row. */
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

  /** The pairs that are not gone, at most `bound`; nothing is set after that. */
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
  /** Puts the pairs that are not gone side by side from row 0; how many they are. */
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

/** The same values with room for `size`, and at least twice as much as before. */
function grown(values: Int32Array, size: number): Int32Array<ArrayBuffer> {
  const wider = new Int32Array(Math.max(size, 2 * values.length))
  wider.set(values)
  return wider
}
