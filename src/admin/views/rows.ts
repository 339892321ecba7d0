// Long lists are made row by row, so that their writer can pause for the event loop. The tables may change meanwhile: each row is
// right when it is made, the list as a whole is not of one moment.

import type { DatapathDump } from '../../datapath/entries.ts'
import type { Datapath } from '../../datapath/datapath.ts'

/** Rows; `undefined` stands where much was looked at without a row to show, and one may pause there too. */
export type Rows<T> = Iterable<T | undefined>

/** Table rows looked at between two pauses. */
export const ROWS_PER_PAUSE = 256

/** A list of rows without pauses, for short lists and tests. */
export function collect<T>(rows: Rows<T>): T[] {
  const all: T[] = []
  for (const row of rows) if (row !== undefined) all.push(row)
  return all
}

/** What the datapath has, read with pauses where it can be. */
export function* readDatapath(datapath: Datapath): Generator<undefined, DatapathDump> {
  return datapath.dumpInSlices === undefined ? datapath.dump() : yield* datapath.dumpInSlices()
}

/** RFC 3339 in UTC with milliseconds. */
export function formatTime(wallMilliseconds: number): string {
  return new Date(wallMilliseconds).toISOString()
}
