// Facts holds the facts (prefix, owner kind, owner) -> labels. Each fact is one row in typed arrays, and the facts of a prefix are a
// linked list. Facts are all that is stored about addresses; everything else is derived from the facts. An owner is a number. Its meaning
// depends on the kind of the owner: for a name it is the row of the name, for an endpoint the number of the endpoint, and so on.

import { int32Column, uint8Column } from '../core/tables/columns.ts'
import { RowLists } from '../core/tables/row-lists.ts'
import { Slots } from '../core/tables/slots.ts'

/** The order is the precedence. If two owners give the same key different values, the earlier kind wins (docs/spec/semantics 3). */
export const OWNER_KINDS = [
  'node',
  'endpoint',
  'resource',
  'peer',
  'name',
  'policy',
  'restored',
] as const

export const OWNER_NODE = 0
export const OWNER_ENDPOINT = 1
export const OWNER_RESOURCE = 2
/** A pod of another node. */
export const OWNER_PEER = 3
export const OWNER_NAME = 4
export const OWNER_POLICY = 5
export const OWNER_RESTORED = 6

export class Facts {
  readonly slots: Slots
  readonly prefix: Int32Array
  readonly kind: Uint8Array
  readonly owner: Int32Array
  readonly set: Int32Array
  /** The next and the previous fact of the same prefix. */
  readonly next: Int32Array
  readonly previous: Int32Array
  readonly #ofPrefix: RowLists

  /** `firstOfPrefix`: a column of the prefixes, which this table writes. */
  constructor(options: { readonly capacity: number; readonly firstOfPrefix: Int32Array }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.prefix = int32Column(rows)
    this.kind = uint8Column(rows)
    this.owner = int32Column(rows)
    this.set = int32Column(rows)
    this.#ofPrefix = new RowLists({ rows: options.capacity, first: options.firstOfPrefix })
    this.next = this.#ofPrefix.next
    this.previous = this.#ofPrefix.previous
  }

  /** Adds a fact at the front of its prefix's list. Returns the row of the fact, or 0 when the table is full. */
  add(prefix: number, kind: number, owner: number, set: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.prefix[row] = prefix
    this.kind[row] = kind
    this.owner[row] = owner
    this.set[row] = set
    this.#ofPrefix.add(prefix, row)
    return row
  }

  remove(row: number): void {
    this.#ofPrefix.remove(this.prefix[row]!, row)
    this.slots.free(row)
  }
}
