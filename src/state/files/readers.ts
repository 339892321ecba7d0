// The readers of records by format version. A version that lays records out anew adds its reader here and keeps those
// before, so that an upgrade reads what it finds; what has no reader was written by a newer version and is passed over.

import type { RecordReader } from './record-visitor.ts'
import { readRecordsV1 } from './records-v1.ts'

export type Readers = Readonly<Record<number, RecordReader>>

export const READERS: Readers = { 1: readRecordsV1 }

/** The newest version that has a reader. */
export function newestOf(readers: Readers): number {
  return Math.max(...Object.keys(readers).map(Number))
}
