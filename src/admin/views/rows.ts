// Makes long lists row by row, so that the writer can pause for the event loop. Tables can change during a pause. Each row is right when it
// is made, but two rows of a list can show different moments.

/** Rows. `undefined` means that much was looked at without a row to show; the writer can pause there too. */
export type Rows<T> = Iterable<T | undefined>

/** How many table rows are looked at between two pauses. */
export const ROWS_PER_PAUSE = 256

/** Collects the rows of a list without pauses. For short lists and tests. */
export function collect<T>(rows: Rows<T>): T[] {
  const all: T[] = []
  for (const row of rows) if (row !== undefined) all.push(row)
  return all
}

/** Formats a wall-clock time as RFC 3339 in UTC with milliseconds. */
export function formatTime(wallMilliseconds: number): string {
  return new Date(wallMilliseconds).toISOString()
}

/** How many names `someOf` gives. */
const NAMED = 4

/** Lists the first names of a list, and how many more there are. */
export function someOf(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : ''
  return names.slice(0, NAMED).join(', ') + more
}
