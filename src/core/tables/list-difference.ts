// The difference between two lists of very many items that are mostly the same objects in the same order, as two versions of a file are:
// everything between their common beginning and their common end. Costs one comparison of references an item, and nothing when `replaced`
// made one list from the other.

export interface Difference<T> {
  /** Of the first list, not in the common parts. */
  readonly before: readonly T[]
  /** Of the second list. */
  readonly after: readonly T[]
}

/** All items in order. Of one list that is not empty it is that list itself. */
export function joined<T>(lists: readonly (readonly T[])[]): readonly T[] {
  const [first = [], ...others] = lists.filter(({ length }) => length > 0)
  if (others.length === 0) return first
  const all = [...first]
  for (const list of others) for (const item of list) all.push(item)
  return all
}

/** What `replaced` made a list of, and where the two differ. */
interface Made {
  readonly of: readonly unknown[]
  readonly from: number
  /** Where what differs ends, in the list that it was made of and in the new one. */
  readonly until: number
  readonly untilNow: number
}

/** Of the newest lists only: an older one, kept here, would keep all those before it. */
const MADE = new WeakMap<readonly unknown[], Made>()

/** A copy in which these items stand for those from `from` up to, and without, `until`. */
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

/** An item that is moved counts as gone and come. */
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

/** A sum over a list that is mostly the one it was asked for last, with little changed. */
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
