// IdList is a list of numbers that is filled again and again without allocation. A match appends ids to the list. The caller reads the
// first `count` items and clears the list. The list doubles when it is full, and never shrinks.

export class IdList {
  #items: Int32Array<ArrayBuffer>
  #count = 0

  constructor(capacity = 64) {
    this.#items = new Int32Array(Math.max(1, capacity))
  }

  /** The first `count` items are the ids. The array is valid until the next `push`. */
  get items(): Int32Array {
    return this.#items
  }

  get count(): number {
    return this.#count
  }

  clear(): void {
    this.#count = 0
  }

  push(id: number): void {
    if (this.#count === this.#items.length) this.#grow()
    this.#items[this.#count++] = id
  }

  #grow(): void {
    const items = new Int32Array(this.#items.length * 2)
    items.set(this.#items)
    this.#items = items
  }
}
