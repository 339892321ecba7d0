// A list of numbers that is filled again and again without allocating: matching appends ids to it, the
// caller reads `items` up to `count` and clears it. Grows by doubling and never shrinks.

export class IdList {
  #items: Int32Array<ArrayBuffer>
  #count = 0

  constructor(capacity = 64) {
    this.#items = new Int32Array(Math.max(1, capacity))
  }

  /** The ids are the first `count` entries; valid until the next `push`. */
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
