// MappingTable holds the mappings (name, address). A mapping has the row of its address in the IPCache. If a selector matches the name,
// the mapping also has a fact there. The entries of a mapping say which endpoints learned it, and until when (entry-table.ts). The first
// mapping of a name is found from the name and is in no index, because most names have only one mapping. The typed arrays
// need about 45 octets per mapping.

import { int32Column, uint8Column } from '../../core/tables/columns.ts'
import { OwnedRows } from '../../core/tables/owned-rows.ts'
import { RowLists } from '../../core/tables/row-lists.ts'
import { put, Slots } from '../../core/tables/slots.ts'

export class MappingTable {
  readonly slots: Slots
  readonly name: Int32Array
  /** Row of the address in the IPCache. */
  readonly prefix: Int32Array
  /** Row of the fact in the node's scope, 0 when there is none. */
  readonly fact: Int32Array
  /** The guard's level of the address (guard.ts). */
  readonly guarded: Uint8Array
  readonly firstEntry: Int32Array
  readonly #ofName: OwnedRows
  readonly nextOfName: Int32Array
  readonly #ofPrefix: RowLists
  readonly nextOfPrefix: Int32Array
  /** First mapping of each IPCache row. */
  readonly firstOfPrefix: Int32Array
  /** How many mappings each IPCache row has. */
  readonly countOfPrefix: Int32Array

  /** `firstOfName`: a column of the names, which this table writes. */
  constructor(options: {
    readonly capacity: number
    readonly prefixCapacity: number
    readonly firstOfName: Int32Array
  }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.name = int32Column(rows)
    this.prefix = int32Column(rows)
    this.fact = int32Column(rows)
    this.guarded = uint8Column(rows)
    this.firstEntry = int32Column(rows)
    this.firstOfPrefix = int32Column(options.prefixCapacity + 1)
    this.countOfPrefix = int32Column(options.prefixCapacity + 1)
    const { capacity, firstOfName: first } = options
    this.#ofName = new OwnedRows({ capacity, first, owner: this.name, key: this.prefix })
    this.nextOfName = this.#ofName.next
    this.#ofPrefix = new RowLists({ rows: capacity, first: this.firstOfPrefix })
    this.nextOfPrefix = this.#ofPrefix.next
  }

  find(name: number, prefix: number): number {
    return this.#ofName.find(name, prefix)
  }

  /** Adds an unknown mapping. Returns its row, or 0 when the table is full. */
  add(name: number, prefix: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.name[row] = name
    this.prefix[row] = prefix
    put(this.fact, row, 0)
    this.guarded[row] = 0
    put(this.firstEntry, row, 0)
    this.#ofName.add(row)
    this.#ofPrefix.add(prefix, row)
    this.countOfPrefix[prefix]!++
    return row
  }

  remove(row: number): void {
    const prefix = this.prefix[row]!
    this.#ofPrefix.remove(prefix, row)
    this.countOfPrefix[prefix]!--
    this.#ofName.remove(row)
    this.name[row] = 0
    this.slots.free(row)
  }

  isUsed(row: number): boolean {
    return this.name[row] !== 0
  }
}
