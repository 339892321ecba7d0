// Doubly linked lists of row numbers in typed arrays, for tables that keep their rows in order or in hash buckets.
// Rows are 0..rows-1, lists 0..lists-1, and -1 is no row. A row is in at most one list; the owner remembers which one.
// Every step is O(1) and allocates nothing; rows and lists that were never used cost no memory.

/** No row: behind the last row of a list, before its first, and in an empty list. */
export const NO_ROW = -1

export class LinkedRows {
  // Links hold row + 1, so that 0 is no row and a new array needs no filling.
  readonly #first: Int32Array
  readonly #after: Int32Array
  /** Of the first row of a list: the last row. */
  readonly #before: Int32Array

  constructor(rows: number, lists: number) {
    this.#first = new Int32Array(lists)
    this.#after = new Int32Array(rows)
    this.#before = new Int32Array(rows)
  }

  first(list: number): number {
    return this.#first[list]! - 1
  }

  last(list: number): number {
    const first = this.#first[list]!
    return first === 0 ? NO_ROW : this.#before[first - 1]! - 1
  }

  /** The next row of the list that holds `row`. */
  after(row: number): number {
    return this.#after[row]! - 1
  }

  /** Adds a row that is in no list at the front of one. */
  addFirst(list: number, row: number): void {
    const first = this.#first[list]!
    this.#after[row] = first
    this.#before[row] = first === 0 ? row + 1 : this.#before[first - 1]!
    if (first !== 0) this.#before[first - 1] = row + 1
    this.#first[list] = row + 1
  }

  /** Adds a row that is in no list at the end of one. */
  addLast(list: number, row: number): void {
    const first = this.#first[list]!
    if (first === 0) return this.addFirst(list, row)
    const last = this.#before[first - 1]!
    this.#after[row] = 0
    this.#before[row] = last
    this.#after[last - 1] = row + 1
    this.#before[first - 1] = row + 1
  }

  /** Takes a row out of the list that holds it. */
  remove(list: number, row: number): void {
    const after = this.#after[row]!
    const before = this.#before[row]!
    const first = this.#first[list]!
    if (first === row + 1) this.#first[list] = after
    else this.#after[before - 1] = after
    if (after !== 0) this.#before[after - 1] = before
    else if (first !== row + 1) this.#before[first - 1] = before
  }
}
