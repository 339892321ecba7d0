// FewSet and FewMap are a set and a map for use in very many instances, most of which have one member. One member is stored without a
// table; a second member makes a table. With one member a FewSet needs 40 octets and a Set 170; a FewMap needs 50 and a Map 220.

export class FewSet<Item> implements Iterable<Item> {
  /** The only member. Undefined when the set is empty or has a table. */
  #only: Item | undefined
  /** The table. Undefined until there was a second member. */
  #all: Set<Item> | undefined

  constructor(only?: Item) {
    this.#only = only
  }

  get size(): number {
    if (this.#all !== undefined) return this.#all.size
    return this.#only === undefined ? 0 : 1
  }

  has(item: Item): boolean {
    return this.#all?.has(item) ?? (this.#only !== undefined && this.#only === item)
  }

  add(item: Item): void {
    if (this.#all !== undefined) {
      this.#all.add(item)
    } else if (this.#only === undefined) {
      this.#only = item
    } else if (this.#only !== item) {
      this.#all = new Set([this.#only, item])
      this.#only = undefined
    }
  }

  /** Returns true if the item was a member. */
  delete(item: Item): boolean {
    if (this.#all !== undefined) return this.#all.delete(item)
    if (this.#only === undefined || this.#only !== item) return false
    this.#only = undefined
    return true
  }

  *[Symbol.iterator](): Iterator<Item> {
    if (this.#all !== undefined) yield* this.#all
    else if (this.#only !== undefined) yield this.#only
  }
}

/** Adds an item to the set of a key. Creates a missing set. */
export function addTo<Key, Item>(sets: Map<Key, FewSet<Item>>, key: Key, item: Item): void {
  const known = sets.get(key)
  if (known === undefined) sets.set(key, new FewSet(item))
  else known.add(item)
}

/** Removes an item from the set of a key. Removes a set that is empty after this. */
export function removeFrom<Key, Item>(sets: Map<Key, FewSet<Item>>, key: Key, item: Item): void {
  const known = sets.get(key)
  known?.delete(item)
  if (known?.size === 0) sets.delete(key)
}

export class FewMap<Key, Value> {
  /** The key of the only member. */
  #key: Key | undefined
  /** The value of the only member. Undefined when the map is empty or has a table. */
  #value: Value | undefined
  #all: Map<Key, Value> | undefined

  get size(): number {
    if (this.#all !== undefined) return this.#all.size
    return this.#value === undefined ? 0 : 1
  }

  has(key: Key): boolean {
    return this.#all?.has(key) ?? (this.#value !== undefined && this.#key === key)
  }

  /** `value` must not be undefined. */
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

  /** Returns true if the key was there. */
  delete(key: Key): boolean {
    if (this.#all !== undefined) return this.#all.delete(key)
    if (!this.has(key)) return false
    this.#key = undefined
    this.#value = undefined
    return true
  }

  /** Calls `use` with each value, in the order in which the keys were first set. */
  forEach(use: (value: Value) => void): void {
    if (this.#all !== undefined) this.#all.forEach(use)
    else if (this.#value !== undefined) use(this.#value)
  }
}
