// Pairs (mapping, endpoint): which endpoint learned which address by which name, and until when. Linked
// twice: by mapping, to see whether anyone still has it, and by endpoint, so that an endpoint that goes
// costs its own pairs and nobody else's. A pair whose endpoint has a view of its own holds the fact there.
// Typed arrays, about 42 octets a pair.

import { HashIndex, hashPair, type RowHasher } from '../core/hash-index.ts'
import { Slots } from '../core/slots.ts'

export class PairTable implements RowHasher {
  readonly slots: Slots
  readonly mapping: Int32Array
  readonly endpoint: Int32Array
  /** End of the TTL in clock ticks. */
  readonly liveUntil: Int32Array
  /** Ticks from then until it may go. */
  readonly grace: Int32Array
  readonly nextOfMapping: Int32Array
  /** Fact in the endpoint's own scope, 0 when there is none. */
  readonly fact: Int32Array
  /** Number of the last scan that saw an open connection, modulo 256; 0 never. */
  readonly seen: Uint8Array
  readonly #nextOfEndpoint: Int32Array
  readonly #previousOfEndpoint: Int32Array
  /** First pair of each endpoint that has any. */
  readonly #firstOfEndpoint = new Map<number, number>()
  readonly #index: HashIndex

  constructor(options: { readonly capacity: number }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.mapping = new Int32Array(rows)
    this.endpoint = new Int32Array(rows)
    this.liveUntil = new Int32Array(rows)
    this.nextOfMapping = new Int32Array(rows)
    this.grace = new Int32Array(rows)
    this.fact = new Int32Array(rows)
    this.seen = new Uint8Array(rows)
    this.#nextOfEndpoint = new Int32Array(rows)
    this.#previousOfEndpoint = new Int32Array(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  find(mapping: number, endpoint: number): number {
    const hash = hashPair(mapping, endpoint)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.mapping[row] === mapping && this.endpoint[row] === endpoint))
        return row
    }
  }

  /** Adds an unknown pair in front of its mapping's list; 0 when full. */
  add(mapping: number, endpoint: number, firstOfMapping: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.mapping[row] = mapping
    this.endpoint[row] = endpoint
    this.nextOfMapping[row] = firstOfMapping
    this.seen[row] = 0
    this.#linkToEndpoint(row, endpoint)
    this.#index.insert(hashPair(mapping, endpoint), row)
    return row
  }

  /** Removes a pair; returns the first of its mapping's list afterwards. */
  remove(row: number, firstOfMapping: number): number {
    this.#index.remove(row)
    this.#unlinkFromEndpoint(row)
    const next = this.nextOfMapping[row]!
    this.mapping[row] = 0
    this.slots.free(row)
    if (firstOfMapping === row) return next
    let before = firstOfMapping
    while (this.nextOfMapping[before] !== row) before = this.nextOfMapping[before]!
    this.nextOfMapping[before] = next
    return firstOfMapping
  }

  isUsed(row: number): boolean {
    return this.mapping[row] !== 0
  }

  /** A pair of the endpoint, 0 when it has none. */
  firstOf(endpoint: number): number {
    return this.#firstOfEndpoint.get(endpoint) ?? 0
  }

  /** The next pair of the same endpoint, 0 behind the last. */
  nextOf(row: number): number {
    return this.#nextOfEndpoint[row]!
  }

  hashOfRow(row: number): number {
    return hashPair(this.mapping[row]!, this.endpoint[row]!)
  }

  /** Behind the first, so that only an endpoint's first pair writes to the map. */
  #linkToEndpoint(row: number, endpoint: number): void {
    const first = this.#firstOfEndpoint.get(endpoint)
    if (first === undefined) this.#firstOfEndpoint.set(endpoint, row)
    const next = first === undefined ? 0 : this.#nextOfEndpoint[first]!
    this.#nextOfEndpoint[row] = next
    this.#previousOfEndpoint[row] = first ?? 0
    if (next !== 0) this.#previousOfEndpoint[next] = row
    if (first !== undefined) this.#nextOfEndpoint[first] = row
  }

  #unlinkFromEndpoint(row: number): void {
    const next = this.#nextOfEndpoint[row]!
    const previous = this.#previousOfEndpoint[row]!
    if (next !== 0) this.#previousOfEndpoint[next] = previous
    if (previous !== 0) this.#nextOfEndpoint[previous] = next
    else if (next !== 0) this.#firstOfEndpoint.set(this.endpoint[row]!, next)
    else this.#firstOfEndpoint.delete(this.endpoint[row]!)
  }
}
