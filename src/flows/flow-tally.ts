// FlowTally counts equal flows of the ring. Flows with the same endpoint, verdict, and question or packet are one group. The first flow of
// a group is due at once. Repetitions are due after a minute, then after two minutes, four, and so on up to an hour. A report has the count
// of its flows and the time of the first and the last. A group without flows for ten minutes is forgotten, and its next flow is due at once
// again. Each event is therefore reported soon, and a repeated event seldom.
//
// Reported times are wall-clock times. Waits are measured on the monotonic clock.
//
// An endpoint can have at most as many rows as are free. So an endpoint that asks random names leaves room for the other endpoints. A flow
// without a row is counted in `lost`. Adding a flow of a known group allocates nothing; a new group allocates its text. FlowTally runs off
// the packet path.

import { KEPT_SPAN_MS } from './flow-folder.ts'
import { FLOW_KEY_WORDS, type FlowRing } from './record/flow-ring.ts'
import { HashIndex } from '../core/tables/hash-index.ts'
import { hashOctets, hashPair } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX } from '../core/name.ts'
import { OctetArena } from '../core/tables/octet-arena.ts'
import { Slots } from '../core/tables/slots.ts'
import { sameOctets } from '../dns/wire.ts'

/** A row costs about 500 octets. All rows cost 32 MiB, but only on a node with this many different flows within an hour. */
export const TALLY_ROWS = 65_536
const REPEAT_MS = 60_000
const SILENT_MS = 600_000
/** Index of the key's word that holds the endpoint. */
const ENDPOINT_WORD = 1

/** Flows of one group since the last report. Times are wall-clock milliseconds. */
export interface Counted {
  /** The members of a JSON object, without braces. */
  readonly text: string
  readonly count: number
  readonly first: number
  readonly last: number
}

/** Returns the members of the JSON object of flow `number` of the ring, without braces. */
export type DescribeFlow = (number: number) => string

export class FlowTally {
  /** Flows for which there was no row. */
  lost = 0
  readonly #ring: FlowRing
  readonly #describe: DescribeFlow
  readonly #slots: Slots
  readonly #index: HashIndex
  readonly #names = new OctetArena()
  readonly #keys: Uint32Array
  readonly #hashes: Uint32Array
  readonly #nameHandles: Int32Array
  readonly #nameLengths: Uint8Array
  readonly #counts: Float64Array
  readonly #firsts: Float64Array
  readonly #lasts: Float64Array
  /** When the last flow of a row was counted. `#heard` and `#dues` are times on the clock of `drain`. */
  readonly #heard: Float64Array
  readonly #dues: Float64Array
  readonly #waits: Float64Array
  /** Undefined for a row that is not in use. */
  readonly #texts: (string | undefined)[] = []
  readonly #details: (string | undefined)[] = []
  readonly #rowsOf = new Map<number, number>()
  readonly #key = new Uint32Array(FLOW_KEY_WORDS)
  readonly #keyOctets = new Uint8Array(this.#key.buffer)
  readonly #name = new Uint8Array(NAME_OCTETS_MAX)
  #nameLength = 0

  constructor(ring: FlowRing, describe: DescribeFlow, rows = TALLY_ROWS) {
    this.#ring = ring
    this.#describe = describe
    this.#slots = new Slots(rows)
    this.#index = new HashIndex(rows, { hashOfRow: (row) => this.#hashes[row]! })
    this.#keys = new Uint32Array((rows + 1) * FLOW_KEY_WORDS)
    this.#hashes = new Uint32Array(rows + 1)
    this.#nameHandles = new Int32Array(rows + 1)
    this.#nameLengths = new Uint8Array(rows + 1)
    this.#counts = new Float64Array(rows + 1)
    this.#firsts = new Float64Array(rows + 1)
    this.#lasts = new Float64Array(rows + 1)
    this.#heard = new Float64Array(rows + 1)
    this.#dues = new Float64Array(rows + 1)
    this.#waits = new Float64Array(rows + 1)
  }

  /** How many groups of flows are remembered. */
  get size(): number {
    return this.#slots.used
  }

  /** Counts flow `number`, which must still be in the ring. `now` is a time on the clock of `drain`. */
  add(number: number, now: number): void {
    const ring = this.#ring
    ring.writeKey(number, this.#key)
    this.#nameLength = ring.copyName(number, this.#name)
    const detail = ring.detailOf(number)
    const hash = this.#hash()
    const time = ring.timeOf(number)
    const row = this.#find(hash, detail) || this.#make(number, hash, detail)
    if (row === 0) {
      this.lost++
      return
    }
    if (this.#counts[row] === 0) this.#firsts[row] = time
    this.#counts[row]!++
    this.#lasts[row] = time
    this.#heard[row] = now
  }

  /**
   * Gives `take` the rows that are due at `now`, lowest row number first, until `take` returns false. `all` makes every row due. The
   * count of a row that was taken begins at 0 again. Silent rows are forgotten.
   */
  drain(now: number, take: (counted: Counted) => boolean, all = false): void {
    const { high } = this.#slots
    for (let row = 1; row <= high; row++) {
      const text = this.#texts[row]
      if (text === undefined) continue
      const count = this.#counts[row]!
      if (count === 0) {
        if (now - this.#heard[row]! >= SILENT_MS) this.#forget(row)
        continue
      }
      if (!all && this.#dues[row]! > now) continue
      if (!take({ text, count, first: this.#firsts[row]!, last: this.#lasts[row]! })) return
      this.#counts[row] = 0
      const wait = Math.min(Math.max(REPEAT_MS, this.#waits[row]! * 2), KEPT_SPAN_MS)
      this.#waits[row] = wait
      this.#dues[row] = now + wait
    }
  }

  #make(number: number, hash: number, detail: string): number {
    const endpoint = this.#key[ENDPOINT_WORD]!
    const own = this.#rowsOf.get(endpoint) ?? 0
    if (own >= this.#slots.capacity - this.#slots.used) return 0
    const row = this.#slots.take()
    if (row === 0) return 0
    this.#rowsOf.set(endpoint, own + 1)
    this.#keys.set(this.#key, row * FLOW_KEY_WORDS)
    this.#hashes[row] = hash
    this.#nameLengths[row] = this.#nameLength
    if (this.#nameLength > 0) {
      this.#nameHandles[row] = this.#names.store(this.#name, 0, this.#nameLength)
    }
    this.#details[row] = detail
    this.#texts[row] = this.#describe(number)
    this.#counts[row] = 0
    this.#dues[row] = 0
    this.#waits[row] = 0
    this.#index.insert(hash, row)
    return row
  }

  #forget(row: number): void {
    const endpoint = this.#keys[row * FLOW_KEY_WORDS + ENDPOINT_WORD]!
    const own = (this.#rowsOf.get(endpoint) ?? 1) - 1
    if (own === 0) this.#rowsOf.delete(endpoint)
    else this.#rowsOf.set(endpoint, own)
    this.#index.remove(row)
    if (this.#nameLengths[row]! > 0) {
      this.#names.free(this.#nameHandles[row]!, this.#nameLengths[row]!)
    }
    this.#texts[row] = undefined
    this.#details[row] = undefined
    this.#slots.free(row)
  }

  #find(hash: number, detail: string): number {
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.#hashes[row] === hash && this.#isRow(row, detail))) return row
    }
  }

  #isRow(row: number, detail: string): boolean {
    const length = this.#nameLength
    if (this.#nameLengths[row] !== length || this.#details[row] !== detail) return false
    const base = row * FLOW_KEY_WORDS
    for (let i = 0; i < FLOW_KEY_WORDS; i++) {
      if (this.#keys[base + i] !== this.#key[i]) return false
    }
    if (length === 0) return true
    const handle = this.#nameHandles[row]!
    const block = this.#names.blockOf(handle)
    return sameOctets(this.#name, 0, block, this.#names.offsetOf(handle), length)
  }

  #hash(): number {
    const key = hashOctets(this.#keyOctets, 0, this.#keyOctets.length)
    return hashPair(key, hashOctets(this.#name, 0, this.#nameLength))
  }
}
