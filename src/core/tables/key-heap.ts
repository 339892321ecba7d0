// KeyHeap is a binary heap over rows of the owner's tables. Each row has a number as its key, and the row with the smallest key is on top.
// Rows and keys are in typed arrays that grow. The place of each row is in an array of the owner. Several heaps without a common row can
// share this array. Every change is O(log n), and allocates nothing except when the heap grows.

const FIRST_CAPACITY = 8

export class KeyHeap {
  /** By row: the row's place + 1, 0 when the row is in no heap that uses this array. */
  readonly #place: Int32Array
  #rows = new Int32Array(FIRST_CAPACITY)
  #keys = new Int32Array(FIRST_CAPACITY)
  #count = 0

  constructor(place: Int32Array) {
    this.#place = place
  }

  get count(): number {
    return this.#count
  }

  /** The row with the smallest key, 0 when there is none. */
  get top(): number {
    return this.#count === 0 ? 0 : this.#rows[0]!
  }

  /** The key of the top row, 0 when there is none. */
  get topKey(): number {
    return this.#count === 0 ? 0 : this.#keys[0]!
  }

  /** Returns the row at a place below `count`. The places are in no useful order. */
  at(place: number): number {
    return this.#rows[place]!
  }

  /** Returns true if the row is in this heap, and not in another heap that shares the places. */
  has(row: number): boolean {
    const at = this.#place[row]! - 1
    return at >= 0 && at < this.#count && this.#rows[at] === row
  }

  /** Adds a row. The row must be in no heap that shares the places. */
  add(row: number, key: number): void {
    if (this.#count === this.#rows.length) this.#grow()
    this.#rise(this.#count++, row, key)
  }

  /** Gives a row of this heap another key. */
  set(row: number, key: number): void {
    const at = this.#place[row]! - 1
    if (this.#keys[at]! > key) this.#rise(at, row, key)
    else this.#sink(at, row, key)
  }

  /** Removes a row of this heap. */
  remove(row: number): void {
    const at = this.#place[row]! - 1
    this.#place[row] = 0
    const last = --this.#count
    if (at === last) return
    const [moved, key] = [this.#rows[last]!, this.#keys[last]!]
    if (at > 0 && this.#keys[(at - 1) >> 1]! > key) this.#rise(at, moved, key)
    else this.#sink(at, moved, key)
  }

  #rise(from: number, row: number, key: number): void {
    let at = from
    while (at > 0) {
      const above = (at - 1) >> 1
      if (this.#keys[above]! <= key) break
      this.#put(at, this.#rows[above]!, this.#keys[above]!)
      at = above
    }
    this.#put(at, row, key)
  }

  #sink(from: number, row: number, key: number): void {
    let at = from
    for (let below = 2 * at + 1; below < this.#count; below = 2 * at + 1) {
      if (below + 1 < this.#count && this.#keys[below + 1]! < this.#keys[below]!) below++
      if (this.#keys[below]! >= key) break
      this.#put(at, this.#rows[below]!, this.#keys[below]!)
      at = below
    }
    this.#put(at, row, key)
  }

  #put(at: number, row: number, key: number): void {
    this.#rows[at] = row
    this.#keys[at] = key
    this.#place[row] = at + 1
  }

  #grow(): void {
    const [rows, keys] = [this.#rows, this.#keys]
    this.#rows = new Int32Array(rows.length * 2)
    this.#keys = new Int32Array(rows.length * 2)
    this.#rows.set(rows)
    this.#keys.set(keys)
  }
}
