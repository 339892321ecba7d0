// Lists by name, and all their items in one list: for sources with very many files of which few change at a time. Written by the reader of
// the files.
//
// Always: `all` has the items of list after list, in the order in which the names came. While nothing changes it is the same object, and
// with a single list it is that list. Cost of `all`: after lists were replaced by others of equal length a copy of references, after other
// changes a look at each list.

import { joined } from './list-difference.ts'

export class JoinedLists<Item> {
  readonly #lists = new Map<string, readonly Item[]>()
  #all: readonly Item[] | undefined = []
  /** Where the items of each list are in `#all`; undefined when that has to be found out. */
  #starts: ReadonlyMap<string, number> | undefined
  /** Replaced by lists of the same length since `#all` was made. */
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

  /** Undefined: no list of this name any more. */
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

  /** Makes it like the other one, which differs from it under these names. */
  follow(other: JoinedLists<Item>, names: Iterable<string>): void {
    for (const name of names) this.set(name, other.get(name))
    this.#all = other.all
    this.#starts = other.#starts
    this.#replaced.clear()
  }

  /** Makes it like the other one, in its order. */
  copy(other: JoinedLists<Item>): void {
    this.#lists.clear()
    this.follow(other, other.names())
  }

  #forget(): void {
    this.#all = undefined
    this.#starts = undefined
    this.#replaced.clear()
  }

  /** Puts replaced items where those before were. */
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
