// Uses: (endpoint, name), which endpoint asked which name, when last, and the pairs that it has by that name. What the bounds
// count: addresses of a use, uses of an endpoint under a wildcard. A use lives while it has a pair. Typed arrays, about 45
// octets a use.

import { HashIndex, hashPair, type RowHasher } from '../core/hash-index.ts'
import { put, Slots } from '../core/slots.ts'

export class UseTable implements RowHasher {
  readonly slots: Slots
  readonly endpoint: Int32Array
  readonly name: Int32Array
  /** Clock tick of the last answer. */
  readonly asked: Int32Array
  readonly firstPair: Int32Array
  /** How many pairs it has, and how many of them stand under an open connection. */
  readonly pairs: Int32Array
  readonly connected: Int32Array
  /** The next use of the same name. */
  readonly nextOfName: Int32Array
  /** First row of the wildcards that count it (wildcard-names.ts). */
  readonly firstMember: Int32Array
  readonly #index: HashIndex

  constructor(options: { readonly capacity: number }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.endpoint = new Int32Array(rows)
    this.name = new Int32Array(rows)
    this.asked = new Int32Array(rows)
    this.firstPair = new Int32Array(rows)
    this.pairs = new Int32Array(rows)
    this.connected = new Int32Array(rows)
    this.nextOfName = new Int32Array(rows)
    this.firstMember = new Int32Array(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  find(endpoint: number, name: number): number {
    const hash = hashPair(endpoint, name)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.name[row] === name && this.endpoint[row] === endpoint)) return row
    }
  }

  /** Adds an unknown use in front of its name's list; 0 when full. */
  add(endpoint: number, name: number, firstOfName: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.endpoint[row] = endpoint
    this.name[row] = name
    put(this.nextOfName, row, firstOfName)
    this.#index.insert(hashPair(endpoint, name), row)
    return row
  }

  /** Removes a use without pairs; returns the first of its name's list afterwards. */
  remove(row: number, firstOfName: number): number {
    this.#index.remove(row)
    const next = this.nextOfName[row]!
    this.name[row] = 0
    this.slots.free(row)
    if (firstOfName === row) return next
    let before = firstOfName
    while (this.nextOfName[before] !== row) before = this.nextOfName[before]!
    this.nextOfName[before] = next
    return firstOfName
  }

  isUsed(row: number): boolean {
    return this.name[row] !== 0
  }

  hashOfRow(row: number): number {
    return hashPair(this.endpoint[row]!, this.name[row]!)
  }
}
