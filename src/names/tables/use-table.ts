// UseTable holds the uses (endpoint, name). A use says when the endpoint last asked for the name, and lists the endpoint's entries by
// that name. Two bounds need uses: the addresses per use, and the uses that an endpoint has under one wildcard. A use stays while it has
// an entry. The first use of a name is found from the name and is in no index. The typed arrays need about 45 octets per use.

import { int32Column } from '../../core/tables/columns.ts'
import { OwnedRows } from '../../core/tables/owned-rows.ts'
import { Slots } from '../../core/tables/slots.ts'

export class UseTable {
  readonly slots: Slots
  readonly endpoint: Int32Array
  readonly name: Int32Array
  /** Tick of the last answer. */
  readonly asked: Int32Array
  readonly firstEntry: Int32Array
  /** How many entries the use has. */
  readonly entries: Int32Array
  /** How many entries of the use have an open connection. */
  readonly connected: Int32Array
  readonly #ofName: OwnedRows
  /** The next use of the same name. */
  readonly nextOfName: Int32Array
  /** First row of the use among the names of wildcards (wildcard-names.ts). */
  readonly firstMember: Int32Array

  /** `firstOfName`: a column of the names, which this table writes. */
  constructor(options: { readonly capacity: number; readonly firstOfName: Int32Array }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.endpoint = int32Column(rows)
    this.name = int32Column(rows)
    this.asked = int32Column(rows)
    this.firstEntry = int32Column(rows)
    this.entries = int32Column(rows)
    this.connected = int32Column(rows)
    this.firstMember = int32Column(rows)
    const { capacity, firstOfName: first } = options
    this.#ofName = new OwnedRows({ capacity, first, owner: this.name, key: this.endpoint })
    this.nextOfName = this.#ofName.next
  }

  find(endpoint: number, name: number): number {
    return this.#ofName.find(name, endpoint)
  }

  /** Adds an unknown use. Returns its row, or 0 when the table is full. */
  add(endpoint: number, name: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.endpoint[row] = endpoint
    this.name[row] = name
    this.#ofName.add(row)
    return row
  }

  /** Removes a use without entries. */
  remove(row: number): void {
    this.#ofName.remove(row)
    this.name[row] = 0
    this.slots.free(row)
  }

  isUsed(row: number): boolean {
    return this.name[row] !== 0
  }
}
