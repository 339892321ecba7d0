// What reading a file gives, record by record, whatever the format version. Octets are those of the file.

import type { SavedDocument } from '../../restore/state-port.ts'

export interface RecordVisitor {
  pair(pair: PairPlace): void
  until(row: number, until: number): void
  gone(row: number): void
  number(id: number, labels: readonly string[]): void
  document(document: SavedDocument): void
  /** Octets of its own journal without which the image is not whole. */
  imageEnd(journalOctets: number): void
}

/** A pair as it stands in a file; one object that the next record overwrites. */
export interface PairPlace {
  row: number
  endpoint: number
  until: number
  grace: number
  family: 4 | 6
  addressAt: number
  nameAt: number
  nameLength: number
}

export interface RecordFault {
  readonly at: number
  readonly reason: string
}

/** Reads the records between `start` and `end` to the first fault. */
export type RecordReader = (
  octets: Uint8Array,
  start: number,
  end: number,
  visitor: RecordVisitor,
) => RecordFault | undefined
