// Uses: (endpoint, name). A use says when the endpoint asked the name last, and lists the entries that it has by that name. Bounds
// count by uses: the addresses of a use, and the uses of an endpoint under a wildcard. A use lives while it has an entry. The first
// use of a name is found from the name and is in no index. Typed arrays, about 45 octets a use.

import { HashIndex, type RowHasher } from '../../core/tables/hash-index.ts'
import { hashPair } from '../../core/tables/keyed-hash.ts'
import { put, Slots } from '../../core/tables/slots.ts'

export class UseTable implements RowHasher {
  readonly slots: Slots
  readonly endpoint: Int32Array
  readonly name: Int32Array
  /** Clock tick of the last answer. */
  readonly asked: Int32Array
  readonly firstEntry: Int32Array
  /** How many entries it has, and how many of them have an open connection. */
  readonly entries: Int32Array
  readonly connected: Int32Array
  /** First use of each name. */
  readonly #firstOfName: Int32Array
  /** The next use of the same name. */
  readonly nextOfName: Int32Array
  /** First row of the wildcards that count it (wildcard-names.ts). */
  readonly firstMember: Int32Array
  readonly #index: HashIndex

  /** `firstOfName`: a column of the names, which this table writes. */
  constructor(options: { readonly capacity: number; readonly firstOfName: Int32Array }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.endpoint = new Int32Array(rows)
    this.name = new Int32Array(rows)
    this.asked = new Int32Array(rows)
    this.firstEntry = new Int32Array(rows)
    this.entries = new Int32Array(rows)
    this.connected = new Int32Array(rows)
    this.#firstOfName = options.firstOfName
    this.nextOfName = new Int32Array(rows)
    this.firstMember = new Int32Array(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  find(endpoint: number, name: number): number {
    const first = this.#firstOfName[name]!
    if (first === 0 || this.endpoint[first] === endpoint) return first
    if (this.nextOfName[first] === 0) return 0
    const hash = hashPair(endpoint, name)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.name[row] === name && this.endpoint[row] === endpoint)) return row
    }
  }

  /** Adds an unknown use; 0 when full. */
  add(endpoint: number, name: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.endpoint[row] = endpoint
    this.name[row] = name
    const first = this.#firstOfName[name]!
    put(this.nextOfName, row, first === 0 ? 0 : this.nextOfName[first]!)
    if (first === 0) {
      this.#firstOfName[name] = row
    } else {
      this.nextOfName[first] = row
      this.#index.insert(this.hashOfRow(row), row)
    }
    return row
  }

  /** Removes a use without entries. */
  remove(row: number): void {
    const name = this.name[row]!
    const next = this.nextOfName[row]!
    const first = this.#firstOfName[name]!
    if (first === row) {
      if (next !== 0) this.#index.remove(next)
      this.#firstOfName[name] = next
    } else {
      this.#index.remove(row)
      let before = first
      while (this.nextOfName[before] !== row) before = this.nextOfName[before]!
      this.nextOfName[before] = next
    }
    this.name[row] = 0
    this.slots.free(row)
  }

  isUsed(row: number): boolean {
    return this.name[row] !== 0
  }

  hashOfRow(row: number): number {
    return hashPair(this.endpoint[row]!, this.name[row]!)
  }
}
