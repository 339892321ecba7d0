// Entries (mapping, endpoint): the endpoint learned the address by the name, and until when. An entry is in two lists: that of its
// mapping, which tells whether any endpoint still has it, and that of its use (endpoint, name), so that an endpoint forgets a name
// at the cost of its own entries. An endpoint with its own view has a fact in each entry. The first entry of a mapping is found
// from the mapping and is in no index, because most have no other. Typed arrays, about 60 octets an entry.

import { HashIndex, type RowHasher } from '../../core/tables/hash-index.ts'
import { hashPair } from '../../core/tables/keyed-hash.ts'
import { put, Slots } from '../../core/tables/slots.ts'

export class EntryTable implements RowHasher {
  readonly slots: Slots
  readonly mapping: Int32Array
  readonly endpoint: Int32Array
  /** End of the TTL in clock ticks. */
  readonly liveUntil: Int32Array
  /** `Clock.now()` of the answer that made it; LEARNED_BEFORE for an entry of an earlier process. */
  readonly learnedAt: Float64Array
  /** Ticks from `liveUntil` to the end of the entry. */
  readonly grace: Int32Array
  /** First entry of each mapping. */
  readonly #firstOfMapping: Int32Array
  readonly nextOfMapping: Int32Array
  /** Fact in the endpoint's own scope, 0 when there is none. */
  readonly fact: Int32Array
  /** 1 while the last look found an open connection of the endpoint to the address. */
  readonly connected: Uint8Array
  /** Tick of the look that found the last connection ended, 0 when none was ever open. */
  readonly lastConnected: Int32Array
  /** The use (endpoint, name) of the entry. */
  readonly use: Int32Array
  readonly nextOfUse: Int32Array
  readonly #previousOfUse: Int32Array
  readonly #index: HashIndex

  /** `firstOfMapping`: a column of the mappings, which this table writes. */
  constructor(options: { readonly capacity: number; readonly firstOfMapping: Int32Array }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.mapping = new Int32Array(rows)
    this.endpoint = new Int32Array(rows)
    this.liveUntil = new Int32Array(rows)
    this.learnedAt = new Float64Array(rows)
    this.#firstOfMapping = options.firstOfMapping
    this.nextOfMapping = new Int32Array(rows)
    this.grace = new Int32Array(rows)
    this.fact = new Int32Array(rows)
    this.connected = new Uint8Array(rows)
    this.lastConnected = new Int32Array(rows)
    this.use = new Int32Array(rows)
    this.nextOfUse = new Int32Array(rows)
    this.#previousOfUse = new Int32Array(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  find(mapping: number, endpoint: number): number {
    const first = this.#firstOfMapping[mapping]!
    if (first === 0 || this.endpoint[first] === endpoint) return first
    if (this.nextOfMapping[first] === 0) return 0
    const hash = hashPair(mapping, endpoint)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.mapping[row] === mapping && this.endpoint[row] === endpoint))
        return row
    }
  }

  /** Adds an unknown entry; 0 when full. */
  add(mapping: number, endpoint: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.mapping[row] = mapping
    this.endpoint[row] = endpoint
    this.connected[row] = 0
    put(this.lastConnected, row, 0)
    const first = this.#firstOfMapping[mapping]!
    put(this.nextOfMapping, row, first === 0 ? 0 : this.nextOfMapping[first]!)
    if (first === 0) {
      this.#firstOfMapping[mapping] = row
    } else {
      this.nextOfMapping[first] = row
      this.#index.insert(this.hashOfRow(row), row)
    }
    return row
  }

  remove(row: number): void {
    const mapping = this.mapping[row]!
    const next = this.nextOfMapping[row]!
    const first = this.#firstOfMapping[mapping]!
    if (first === row) {
      if (next !== 0) this.#index.remove(next)
      this.#firstOfMapping[mapping] = next
    } else {
      this.#index.remove(row)
      let before = first
      while (this.nextOfMapping[before] !== row) before = this.nextOfMapping[before]!
      this.nextOfMapping[before] = next
    }
    this.mapping[row] = 0
    this.slots.free(row)
  }

  isUsed(row: number): boolean {
    return this.mapping[row] !== 0
  }

  /** Puts an entry in front of its use's list; returns the first of the list. */
  linkToUse(row: number, use: number, firstOfUse: number): number {
    this.use[row] = use
    put(this.nextOfUse, row, firstOfUse)
    put(this.#previousOfUse, row, 0)
    if (firstOfUse !== 0) this.#previousOfUse[firstOfUse] = row
    return row
  }

  /** Takes an entry out of its use's list; returns the first of the list afterwards. */
  unlinkFromUse(row: number, firstOfUse: number): number {
    const next = this.nextOfUse[row]!
    const previous = this.#previousOfUse[row]!
    if (next !== 0) this.#previousOfUse[next] = previous
    if (previous !== 0) this.nextOfUse[previous] = next
    return previous === 0 ? next : firstOfUse
  }

  hashOfRow(row: number): number {
    return hashPair(this.mapping[row]!, this.endpoint[row]!)
  }
}
