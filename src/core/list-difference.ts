// What is different between two lists that are mostly the same objects in the same order, as two versions of a file are:
// what stands between their common beginning and their common end. Costs one comparison of references an item.

export interface Difference<T> {
  /** Of the first list, not in the common parts. */
  readonly before: readonly T[]
  /** Of the second list. */
  readonly after: readonly T[]
}

/** An item that is moved counts as gone and come. */
export function difference<T>(before: readonly T[], after: readonly T[]): Difference<T> {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start++
  let end = 0
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++
  return {
    before: before.slice(start, before.length - end),
    after: after.slice(start, after.length - end),
  }
}
