// Facts: (prefix, owner kind, owner) -> labels, one row each in typed arrays, linked per prefix. Facts are all that is stored about
// addresses; everything else is derived from them. An owner is a number whose meaning its kind's writer knows (a name, a policy, an
// endpoint ...).

import { put, Slots } from '../core/tables/slots.ts'

/** Order is precedence: for the same key the earlier kind wins (docs/spec/semantics 3). */
export const OWNER_KINDS = ['node', 'endpoint', 'resource', 'name', 'policy', 'restored'] as const
export type OwnerKind = (typeof OWNER_KINDS)[number]

export const OWNER_NODE = 0
export const OWNER_ENDPOINT = 1
export const OWNER_RESOURCE = 2
export const OWNER_NAME = 3
export const OWNER_POLICY = 4
export const OWNER_RESTORED = 5

export class Facts {
  readonly slots: Slots
  readonly prefix: Int32Array
  readonly kind: Uint8Array
  readonly owner: Int32Array
  readonly set: Int32Array
  readonly next: Int32Array
  readonly previous: Int32Array

  constructor(options: { readonly capacity: number }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.prefix = new Int32Array(rows)
    this.kind = new Uint8Array(rows)
    this.owner = new Int32Array(rows)
    this.set = new Int32Array(rows)
    this.next = new Int32Array(rows)
    this.previous = new Int32Array(rows)
  }

  /** Links a new fact in front of the prefix's list, whose first row it returns; 0 when the table is full. */
  add(first: number, prefix: number, kind: number, owner: number, set: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.prefix[row] = prefix
    this.kind[row] = kind
    this.owner[row] = owner
    this.set[row] = set
    put(this.next, row, first)
    put(this.previous, row, 0)
    if (first !== 0) this.previous[first] = row
    return row
  }

  /** Unlinks a fact; returns the first row of its prefix's list afterwards. */
  remove(row: number, first: number): number {
    const next = this.next[row]!
    const previous = this.previous[row]!
    if (next !== 0) this.previous[next] = previous
    if (previous !== 0) this.next[previous] = next
    this.slots.free(row)
    return previous === 0 ? next : first
  }
}
