// Mappings: name -> address. A mapping holds the row of its address in the IPCache. When a selector matches its name, it also
// holds the fact there. Its entries say which endpoints learned it and until when (entry-table.ts). The first mapping of a name is
// found from the name and is in no index, because most names have no other. Typed arrays, about 45 octets a mapping.

import { HashIndex, type RowHasher } from '../../core/tables/hash-index.ts'
import { hashPair } from '../../core/tables/keyed-hash.ts'
import { put, Slots } from '../../core/tables/slots.ts'

export class MappingTable implements RowHasher {
  readonly slots: Slots
  readonly name: Int32Array
  /** Row of the address in the IPCache. */
  readonly prefix: Int32Array
  /** Row of the fact, 0 when no selector matches the name. */
  readonly fact: Int32Array
  /** How far the address is guarded (guard.ts). */
  readonly guarded: Uint8Array
  readonly firstEntry: Int32Array
  /** First mapping of each name. */
  readonly #firstOfName: Int32Array
  readonly nextOfName: Int32Array
  readonly previousOfName: Int32Array
  readonly nextOfPrefix: Int32Array
  readonly previousOfPrefix: Int32Array
  /** First mapping of each IPCache row. */
  readonly firstOfPrefix: Int32Array
  /** How many names each IPCache row has. */
  readonly countOfPrefix: Int32Array
  readonly #index: HashIndex

  /** `firstOfName`: a column of the names, which this table writes. */
  constructor(options: {
    readonly capacity: number
    readonly prefixCapacity: number
    readonly firstOfName: Int32Array
  }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.name = new Int32Array(rows)
    this.prefix = new Int32Array(rows)
    this.fact = new Int32Array(rows)
    this.guarded = new Uint8Array(rows)
    this.firstEntry = new Int32Array(rows)
    this.#firstOfName = options.firstOfName
    this.nextOfName = new Int32Array(rows)
    this.previousOfName = new Int32Array(rows)
    this.nextOfPrefix = new Int32Array(rows)
    this.previousOfPrefix = new Int32Array(rows)
    this.firstOfPrefix = new Int32Array(options.prefixCapacity + 1)
    this.countOfPrefix = new Int32Array(options.prefixCapacity + 1)
    this.#index = new HashIndex(options.capacity, this)
  }

  find(name: number, prefix: number): number {
    const first = this.#firstOfName[name]!
    if (first === 0 || this.prefix[first] === prefix) return first
    if (this.nextOfName[first] === 0) return 0
    const hash = hashPair(name, prefix)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.name[row] === name && this.prefix[row] === prefix)) return row
    }
  }

  /** Adds an unknown mapping; 0 when full. */
  add(name: number, prefix: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.name[row] = name
    this.prefix[row] = prefix
    put(this.fact, row, 0)
    this.guarded[row] = 0
    put(this.firstEntry, row, 0)
    this.#linkToName(row, name)
    const firstOfPrefix = this.firstOfPrefix[prefix]!
    put(this.nextOfPrefix, row, firstOfPrefix)
    put(this.previousOfPrefix, row, 0)
    if (firstOfPrefix !== 0) this.previousOfPrefix[firstOfPrefix] = row
    this.firstOfPrefix[prefix] = row
    this.countOfPrefix[prefix]!++
    return row
  }

  remove(row: number): void {
    const next = this.nextOfPrefix[row]!
    const previous = this.previousOfPrefix[row]!
    if (next !== 0) this.previousOfPrefix[next] = previous
    if (previous !== 0) this.nextOfPrefix[previous] = next
    else this.firstOfPrefix[this.prefix[row]!] = next
    this.countOfPrefix[this.prefix[row]!]!--
    this.#unlinkFromName(row)
    this.name[row] = 0
    this.slots.free(row)
  }

  /** Makes the row the first of its name, or puts it behind the first and into the index. */
  #linkToName(row: number, name: number): void {
    const first = this.#firstOfName[name]!
    const next = first === 0 ? 0 : this.nextOfName[first]!
    put(this.nextOfName, row, next)
    put(this.previousOfName, row, first)
    if (next !== 0) this.previousOfName[next] = row
    if (first === 0) {
      this.#firstOfName[name] = row
    } else {
      this.nextOfName[first] = row
      this.#index.insert(this.hashOfRow(row), row)
    }
  }

  #unlinkFromName(row: number): void {
    const next = this.nextOfName[row]!
    const previous = this.previousOfName[row]!
    if (previous !== 0) {
      this.#index.remove(row)
      this.nextOfName[previous] = next
    } else {
      if (next !== 0) this.#index.remove(next)
      this.#firstOfName[this.name[row]!] = next
    }
    if (next !== 0) this.previousOfName[next] = previous
  }

  isUsed(row: number): boolean {
    return this.name[row] !== 0
  }

  hashOfRow(row: number): number {
    return hashPair(this.name[row]!, this.prefix[row]!)
  }
}
