// Lists of very many items that are mostly the same from one time to the next. What is different between two lists that are mostly the same objects in the same order, as two versions of a file are:
// what stands between their common beginning and their common end. Costs one comparison of references an item.

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

/** A copy in which these items stand for those from `from` up to, and without, `until`. */
export function replaced<T>(
  list: readonly T[],
  from: number,
  until: number,
  items: readonly T[],
): readonly T[] {
  if (items.length !== until - from) return list.slice(0, from).concat(items, list.slice(until))
  const all = list.slice()
  items.forEach((item, i) => (all[from + i] = item))
  return all
}

/** An item that is moved counts as gone and come. */
export function difference<T>(before: readonly T[], after: readonly T[]): Difference<T> {
  if (before === after) return { before: [], after: [] }
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
