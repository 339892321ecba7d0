// A map for very many instances that mostly have one entry. That entry is held by itself, and a table is made only for more. Takes 50
// octets with one entry, where a Map takes 220.

export class FewMap<Key, Value> {
  /** The only entry; undefined values when there is none, or a table. */
  #key: Key | undefined
  #value: Value | undefined
  #all: Map<Key, Value> | undefined

  get size(): number {
    if (this.#all !== undefined) return this.#all.size
    return this.#value === undefined ? 0 : 1
  }

  has(key: Key): boolean {
    return this.#all?.has(key) ?? (this.#value !== undefined && this.#key === key)
  }

  /** `value` is never undefined. */
  set(key: Key, value: Value): void {
    if (this.#all !== undefined) {
      this.#all.set(key, value)
    } else if (this.#value === undefined || this.#key === key) {
      this.#key = key
      this.#value = value
    } else if (this.#key !== undefined) {
      this.#all = new Map([
        [this.#key, this.#value],
        [key, value],
      ])
      this.#key = undefined
      this.#value = undefined
    }
  }

  /** Whether it was there. */
  delete(key: Key): boolean {
    if (this.#all !== undefined) return this.#all.delete(key)
    if (!this.has(key)) return false
    this.#key = undefined
    this.#value = undefined
    return true
  }

  /** Calls `use` with each value, in the order in which their keys came. */
  forEach(use: (value: Value) => void): void {
    if (this.#all !== undefined) this.#all.forEach(use)
    else if (this.#value !== undefined) use(this.#value)
  }
}
