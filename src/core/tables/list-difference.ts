// This file finds the difference between two lists of very many items. The lists have mostly the same objects in the same order, as two
// versions of a file do. The difference is everything between their common beginning and their common end. It costs one comparison of
// references per item, and none if `replaced` made one list from the other.

export interface Difference<T> {
  /** The items of the first list between the common beginning and the common end. */
  readonly before: readonly T[]
  /** The items of the second list between the common beginning and the common end. */
  readonly after: readonly T[]
}

/** Returns the items of all lists, in order. If only one list has items, returns that list itself. */
export function joined<T>(lists: readonly (readonly T[])[]): readonly T[] {
  const [first = [], ...others] = lists.filter(({ length }) => length > 0)
  if (others.length === 0) return first
  const all = [...first]
  for (const list of others) for (const item of list) all.push(item)
  return all
}

/** How `replaced` made a list from another list. */
interface Made {
  /** The other list. */
  readonly of: readonly unknown[]
  /** The first index at which the two lists differ. */
  readonly from: number
  /** The index in the other list at which the common end begins. */
  readonly until: number
  /** The index in the new list at which the common end begins. */
  readonly untilNow: number
}

/** By new list. Only the newest list of a chain is in here, because an older one would keep all lists before it in memory. */
const MADE = new WeakMap<readonly unknown[], Made>()

/** Returns a copy of the list in which `items` replace the items from index `from` to `until - 1`. */
export function replaced<T>(
  list: readonly T[],
  from: number,
  until: number,
  items: readonly T[],
): readonly T[] {
  const isAsLong = items.length === until - from
  const all = isAsLong ? list.slice() : list.slice(0, from).concat(items, list.slice(until))
  if (isAsLong) items.forEach((item, i) => (all[from + i] = item))
  MADE.delete(list)
  MADE.set(all, { of: list, from, until, untilNow: from + items.length })
  return all
}

/** Returns the difference between two lists. An item that was moved is in both parts of the difference. */
export function difference<T>(before: readonly T[], after: readonly T[]): Difference<T> {
  if (before === after) return { before: [], after: [] }
  const made = MADE.get(after)
  if (made?.of === before) {
    const { from, until, untilNow } = made
    return { before: before.slice(from, until), after: after.slice(from, untilNow) }
  }
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start++
  let end = 0
  while (
    end < shorter - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end++
  }
  return {
    before: before.slice(start, before.length - end),
    after: after.slice(start, after.length - end),
  }
}

/** Sums a number over the items of a list. Each call costs only the difference to the list of the call before. */
export class RunningSum<T> {
  readonly #of: (item: T) => number
  #list: readonly T[] = []
  #sum = 0

  constructor(of: (item: T) => number) {
    this.#of = of
  }

  over(list: readonly T[]): number {
    const { before, after } = difference(this.#list, list)
    for (const item of before) this.#sum -= this.#of(item)
    for (const item of after) this.#sum += this.#of(item)
    this.#list = list
    return this.#sum
  }
}
