// ScopedRows indexes the rows of the prefix table that are one endpoint's own view of an address. Such a view inherits labels from the
// node's row of the same address, as if that row were its container. Scope 0 is the node's scope. Every other scope is the number of an
// endpoint. A view is found by (scope, node's row). The views of a node's row are in a list, so that a change of the node's row costs
// only the views that exist.
//
// While no endpoint has a scope of its own, namegate never writes to these arrays, and pages that are never written need no memory.

import { int32Column } from '../core/tables/columns.ts'
import { OwnedRows } from '../core/tables/owned-rows.ts'

export class ScopedRows {
  /** The endpoint whose view a row is, 0 for the node's rows. */
  readonly scope: Int32Array
  /** For a view, the node's row of the same address. 0 for the node's rows. */
  readonly base: Int32Array
  /** First view of a node's row, 0 when there is none. */
  readonly first: Int32Array
  readonly next: Int32Array
  readonly #views: OwnedRows
  readonly #capacity: number
  #count = 0

  /** `rows`: the rows of the prefix table. `capacity`: the most rows that can be views. */
  constructor(options: { readonly capacity: number; readonly rows: number }) {
    const rows = options.rows + 1
    this.#capacity = options.capacity
    this.scope = int32Column(rows)
    this.base = int32Column(rows)
    this.first = int32Column(rows)
    const { scope, base, first } = this
    this.#views = new OwnedRows({ ...options, first, owner: base, key: scope })
    this.next = this.#views.next
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#count >= this.#capacity
  }

  /** Returns the endpoint's view of a node's row, 0 when there is none. */
  find(scope: number, base: number): number {
    return this.#views.find(base, scope)
  }

  /** Returns the endpoint's own view of the address of a node's row, or the node's row when the endpoint has no own view. */
  viewOf(scope: number, base: number): number {
    const own = this.count === 0 ? 0 : this.find(scope, base)
    return own === 0 ? base : own
  }

  /** Makes a new row the endpoint's view of a node's row. The endpoint must not have a view of it yet. */
  add(row: number, scope: number, base: number): void {
    this.scope[row] = scope
    this.base[row] = base
    this.#views.add(row)
    this.#count++
  }

  remove(row: number): void {
    this.#views.remove(row)
    this.scope[row] = 0
    this.base[row] = 0
    this.#count--
  }
}
