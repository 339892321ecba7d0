// Rows of the prefix table that are one endpoint's own view of an address. Such a row stands above the node's row of the same
// address and inherits from it as if it were inside it. Scope 0 is the node's; any other is an endpoint's number. Rows are found by
// (scope, node's row) and listed by node's row, so that a change there costs only the views that exist.
//
// While no endpoint has a scope of its own, nothing here is touched: unwritten pages cost no memory.

import { HashIndex, type RowHasher } from '../core/tables/hash-index.ts'
import { hashPair } from '../core/tables/keyed-hash.ts'

export class ScopedRows implements RowHasher {
  /** Endpoint whose view a row is; 0 for the node's rows. */
  readonly scope: Int32Array
  /** The node's row of the same address; 0 for the node's rows. */
  readonly base: Int32Array
  /** First scoped row over a node's row, 0 when there is none. */
  readonly first: Int32Array
  readonly next: Int32Array
  readonly #previous: Int32Array
  readonly #index: HashIndex
  readonly #capacity: number
  #count = 0

  /** `rows` of the table, `capacity` of them at most scoped. */
  constructor(options: { readonly capacity: number; readonly rows: number }) {
    const rows = options.rows + 1
    this.#capacity = options.capacity
    this.scope = new Int32Array(rows)
    this.base = new Int32Array(rows)
    this.first = new Int32Array(rows)
    this.next = new Int32Array(rows)
    this.#previous = new Int32Array(rows)
    this.#index = new HashIndex(options.capacity, this, options.rows)
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#count >= this.#capacity
  }

  /** The row of an endpoint's view over a node's row, 0 when there is none. */
  find(scope: number, base: number): number {
    const hash = hashPair(scope, base)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.scope[row] === scope && this.base[row] === base)) return row
    }
  }

  /** The row by which an endpoint sees what a node's row is about: its own view's, or the node's. */
  viewOf(scope: number, base: number): number {
    const own = this.count === 0 ? 0 : this.find(scope, base)
    return own === 0 ? base : own
  }

  /** Makes a fresh row the view of an endpoint that has none over this node's row. */
  add(row: number, scope: number, base: number): void {
    const next = this.first[base]!
    this.scope[row] = scope
    this.base[row] = base
    this.next[row] = next
    this.#previous[row] = 0
    if (next !== 0) this.#previous[next] = row
    this.first[base] = row
    this.#index.insert(hashPair(scope, base), row)
    this.#count++
  }

  remove(row: number): void {
    this.#index.remove(row)
    const next = this.next[row]!
    const previous = this.#previous[row]!
    if (next !== 0) this.#previous[next] = previous
    if (previous !== 0) this.next[previous] = next
    else this.first[this.base[row]!] = next
    this.scope[row] = 0
    this.base[row] = 0
    this.#count--
  }

  hashOfRow(row: number): number {
    return hashPair(this.scope[row]!, this.base[row]!)
  }
}
