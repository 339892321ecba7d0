// Rows in the order of a number each, the smallest on top: a binary heap over rows of the owner's tables. Rows and keys are in growing
// typed arrays. The place of each row is in an array of the owner, so that several heaps that share no row can use one array. Every
// change is O(log n) and allocates nothing once grown.

const FIRST_CAPACITY = 8

export class KeyHeap {
  /** By row: its place + 1, 0 when it is in no heap that uses the array. */
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

  /** Its key; 0 when there is none. */
  get topKey(): number {
    return this.#count === 0 ? 0 : this.#keys[0]!
  }

  /** The row at a place below `count`, in no order that means anything. */
  at(place: number): number {
    return this.#rows[place]!
  }

  /** Whether a row is in this heap, not only in one that shares the places. */
  has(row: number): boolean {
    const at = this.#place[row]! - 1
    return at >= 0 && at < this.#count && this.#rows[at] === row
  }

  /** Adds a row that is in none of the heaps that share the places. */
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

  /** Takes a row of this heap out. */
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
