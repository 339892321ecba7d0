// A set for very many instances that mostly have one member. That member is held by itself, and a table is made only for more. Takes 40
// octets with one member, where a Set takes 170.

export class FewSet<Item> implements Iterable<Item> {
  /** The only member; undefined when there is none, or a table. */
  #only: Item | undefined
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

  /** Whether it was there. */
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

/** Adds to the set of a key, which is made when it is the first. */
export function addTo<Key, Item>(sets: Map<Key, FewSet<Item>>, key: Key, item: Item): void {
  const known = sets.get(key)
  if (known === undefined) sets.set(key, new FewSet(item))
  else known.add(item)
}

/** Takes from the set of a key, which goes with its last item. */
export function removeFrom<Key, Item>(sets: Map<Key, FewSet<Item>>, key: Key, item: Item): void {
  const known = sets.get(key)
  known?.delete(item)
  if (known?.size === 0) sets.delete(key)
}
