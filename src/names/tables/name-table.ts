// NameTable holds every learned name once, with the label set of the FQDN selectors that match the name. The names in wire form are in an
// arena, everything else is in typed arrays. A name needs about 70 octets, which the garbage collector does not look at. A row stays
// while the name has a mapping.

import { int32Column, uint8Column } from '../../core/tables/columns.ts'
import { HashIndex } from '../../core/tables/hash-index.ts'
import { formatName } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { OctetArena } from '../../core/tables/octet-arena.ts'
import { Slots } from '../../core/tables/slots.ts'

/**
 * The labels that a client's name had when the client asked for it, and the epoch of the selectors at that time. Epoch 0: the labels
 * are not known yet.
 */
export interface AskedLabels {
  readonly labels: number
  readonly labelEpoch: number
}

/**
 * A name to look up: its wire form in lower case at offset 0, the length in octets, and their `hashOctets`. The table notes in the key
 * where it found the name.
 */
export class NameKey implements AskedLabels {
  wire: Uint8Array = new Uint8Array(0)
  length = 0
  hash = 0
  /** The row that the table found last, 0 for none. */
  row = 0
  /** The table's `#changes` when it found `row`. */
  foundAt = -1
  labels = 0
  labelEpoch = 0

  set(wire: Uint8Array, length: number, hash: number): this {
    this.wire = wire
    this.length = length
    this.hash = hash
    this.foundAt = -1
    this.labelEpoch = 0
    return this
  }
}

export class NameTable {
  readonly slots: Slots
  /** The label set of the selectors that matched the name in `epoch`. */
  readonly labels: Int32Array
  /** The epoch of the selectors that made `labels`. */
  readonly epoch: Int32Array
  readonly firstMapping: Int32Array
  readonly mappings: Int32Array
  /** The first use of the name (use-table.ts). Each use is an endpoint that asked for the name. */
  readonly firstUse: Int32Array
  /** How many names were added and removed since the start. */
  #changes = 0
  readonly #handles: Int32Array
  readonly #lengths: Uint8Array
  readonly #arena = new OctetArena()
  readonly #index: HashIndex

  constructor(options: { readonly capacity: number }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.labels = int32Column(rows)
    this.epoch = int32Column(rows)
    this.firstMapping = int32Column(rows)
    this.mappings = int32Column(rows)
    this.firstUse = int32Column(rows)
    this.#handles = int32Column(rows)
    this.#lengths = uint8Column(rows)
    this.#index = new HashIndex(options.capacity, this)
  }

  /** Returns the row of a name, 0 when unknown. A repeated call with the same key is one comparison, until a name is added or removed. */
  rowOf(key: NameKey): number {
    if (key.foundAt !== this.#changes) {
      key.row = this.find(key.wire, 0, key.length, key.hash)
      key.foundAt = this.#changes
    }
    return key.row
  }

  /** Returns the row of a lower-case name in wire form with its hash (core/name.ts), 0 when unknown. */
  find(wire: Uint8Array, offset: number, length: number, hash: number): number {
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || this.#equals(row, wire, offset, length)) return row
    }
  }

  /** Adds an unknown name. Returns its row, or 0 when the table is full. */
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

  /** Returns an array that has the row's name in wire form at `offsetOf(row)`. */
  octetsOf(row: number): Uint8Array {
    return this.#arena.blockOf(this.#handles[row]!)
  }

  offsetOf(row: number): number {
    return this.#arena.offsetOf(this.#handles[row]!)
  }

  /** Returns the length of the row's name in wire form, in octets with the final zero. */
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
