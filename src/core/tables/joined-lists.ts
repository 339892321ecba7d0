// JoinedLists holds named lists, and joins the items of all lists into one list. It is for sources with very many files, of which few
// change at a time. The reader of the files sets the lists.
//
// `all` has the items of list after list, in the order in which the names were first set. While nothing changes, `all` is the same object.
// With a single list, `all` is that list. If only lists of equal length were replaced, `all` costs one copy of references. After other
// changes it costs a look at each list.

import { joined } from './list-difference.ts'

export class JoinedLists<Item> {
  readonly #lists = new Map<string, readonly Item[]>()
  #all: readonly Item[] | undefined = []
  /** By name: where the items of the list begin in `#all`. Undefined: not computed yet. */
  #starts: ReadonlyMap<string, number> | undefined
  /** Names of lists that were replaced by lists of the same length since `#all` was made. */
  readonly #replaced = new Set<string>()

  get size(): number {
    return this.#lists.size
  }

  get(name: string): readonly Item[] | undefined {
    return this.#lists.get(name)
  }

  names(): Iterable<string> {
    return this.#lists.keys()
  }

  /** Sets the list of a name. `items` undefined: removes the list. */
  set(name: string, items: readonly Item[] | undefined): void {
    const before = this.#lists.get(name)
    if (before === items) return
    if (items === undefined) this.#lists.delete(name)
    else this.#lists.set(name, items)
    if (before !== undefined && before.length === items?.length) this.#replaced.add(name)
    else this.#forget()
  }

  get all(): readonly Item[] {
    if (this.#replaced.size > 0) this.#patch()
    this.#all ??= joined([...this.#lists.values()])
    return this.#all
  }

  /** Copies the lists of these names from `other`. After that the two must have the same lists. */
  follow(other: JoinedLists<Item>, names: Iterable<string>): void {
    for (const name of names) this.set(name, other.get(name))
    this.#all = other.all
    this.#starts = other.#starts
    this.#replaced.clear()
  }

  /** Copies all lists from `other`, in the order of `other`. */
  copy(other: JoinedLists<Item>): void {
    this.#lists.clear()
    this.follow(other, other.names())
  }

  #forget(): void {
    this.#all = undefined
    this.#starts = undefined
    this.#replaced.clear()
  }

  /** Makes a copy of `#all` in which the items of replaced lists stand in their old places. */
  #patch(): void {
    const before = this.#all
    if (
      before === undefined ||
      before.length === this.#lists.get(firstOf(this.#replaced))?.length
    ) {
      return this.#forget()
    }
    const starts = this.#starts ?? startsOf(this.#lists)
    const all = before.slice()
    for (const name of this.#replaced) {
      let at = starts.get(name) ?? 0
      for (const item of this.#lists.get(name) ?? []) all[at++] = item
    }
    this.#all = all
    this.#starts = starts
    this.#replaced.clear()
  }
}

function firstOf(names: ReadonlySet<string>): string {
  for (const name of names) return name
  return ''
}

function startsOf(lists: ReadonlyMap<string, readonly unknown[]>): ReadonlyMap<string, number> {
  const starts = new Map<string, number>()
  let at = 0
  for (const [name, { length }] of lists) {
    starts.set(name, at)
    at += length
  }
  return starts
}
