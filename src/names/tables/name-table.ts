// Every learned name, once, with the label set of the FQDN selectors that match it. Wire octets are in an arena, all else is in
// typed arrays: about 70 octets a name, outside the garbage collector. A row lives while a mapping uses it.

import { HashIndex } from '../../core/tables/hash-index.ts'
import { formatName } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { OctetArena } from '../../core/tables/octet-arena.ts'
import { Slots } from '../../core/tables/slots.ts'

/** A name to look up: lower-case wire octets from 0, their number and `hashOctets` of them. The table notes where it found it. */
export class NameKey {
  wire: Uint8Array = new Uint8Array(0)
  length = 0
  hash = 0
  /** The row that the table found last, and the table's `changes` at that time. */
  row = 0
  foundAt = -1

  set(wire: Uint8Array, length: number, hash: number): this {
    this.wire = wire
    this.length = length
    this.hash = hash
    this.foundAt = -1
    return this
  }
}

export class NameTable {
  readonly slots: Slots
  /** The label set of the matching selectors, as of `epoch`. */
  readonly labels: Int32Array
  /** The epoch of the selectors that made `labels`. */
  readonly epoch: Int32Array
  readonly firstMapping: Int32Array
  readonly mappings: Int32Array
  /** Endpoints that asked it (use-table.ts). */
  readonly firstUse: Int32Array
  /** Names that came or went since the start. */
  #changes = 0
  readonly #handles: Int32Array
  readonly #lengths: Uint8Array
  readonly #arena = new OctetArena()
  readonly #index: HashIndex

  constructor(options: { readonly capacity: number }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.labels = new Int32Array(rows)
    this.epoch = new Int32Array(rows)
    this.firstMapping = new Int32Array(rows)
    this.mappings = new Int32Array(rows)
    this.firstUse = new Int32Array(rows)
    this.#handles = new Int32Array(rows)
    this.#lengths = new Uint8Array(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  /** The row of a name, 0 when unknown. A second call for the same key costs two comparisons while no name comes or goes. */
  rowOf(key: NameKey): number {
    if (key.foundAt !== this.#changes) {
      key.row = this.find(key.wire, 0, key.length, key.hash)
      key.foundAt = this.#changes
    }
    return key.row
  }

  /** The row of a lower-case wire name with its hash (core/name.ts), 0 when unknown. */
  find(wire: Uint8Array, offset: number, length: number, hash: number): number {
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || this.#equals(row, wire, offset, length)) return row
    }
  }

  /** Adds an unknown name; 0 when the table is full. */
  add(key: NameKey): number {
    const { wire, length, hash } = key
    const row = this.slots.take()
    if (row === 0) return 0
    this.#handles[row] = this.#arena.store(wire, 0, length)
    this.#lengths[row] = length
    this.#index.insert(hash, row)
    key.row = row
    key.foundAt = ++this.#changes
    return row
  }

  remove(row: number): void {
    this.#changes++
    this.#index.remove(row)
    this.#arena.free(this.#handles[row]!, this.#lengths[row]!)
    this.#handles[row] = 0
    this.labels[row] = 0
    this.epoch[row] = 0
    this.slots.free(row)
  }

  /** Octets that hold the row's name at `offsetOf(row)`. */
  octetsOf(row: number): Uint8Array {
    return this.#arena.blockOf(this.#handles[row]!)
  }

  offsetOf(row: number): number {
    return this.#arena.offsetOf(this.#handles[row]!)
  }

  /** Octets of the row's name in wire form, the final zero included. */
  lengthOf(row: number): number {
    return this.#lengths[row]!
  }

  isUsed(row: number): boolean {
    return this.#handles[row] !== 0
  }

  format(row: number): string {
    return formatName(this.octetsOf(row), this.offsetOf(row))
  }

  hashOfRow(row: number): number {
    return hashOctets(this.octetsOf(row), this.offsetOf(row), this.#lengths[row]!)
  }

  #equals(row: number, wire: Uint8Array, offset: number, length: number): boolean {
    if (this.#lengths[row] !== length) return false
    const octets = this.octetsOf(row)
    const at = this.offsetOf(row)
    for (let i = 0; i < length; i++) if (octets[at + i] !== wire[offset + i]) return false
    return true
  }
}
