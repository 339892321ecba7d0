// The port to the state folder: the state that one daemon saves for the next one. `src/state` implements this port on
// disk. The folder's word for an entry (endpoint, name, address) is a pair, as in `limits.pairs`.
//
// Every record has a key, and the last record of a key holds. A record may therefore be written twice, and an image of
// everything may be taken while records are written. The key of a pair is its row in the entry table. The key only says
// which records belong together.
//
// Times are whole seconds of the kernel's clock since boot. No program can set this clock, so it means the same to the
// next process. The folder also keeps what a process needs to translate these times after a reboot.

import type { Family } from '../core/ip.ts'

/** What a daemon gets in order to outlive itself. */
export interface StateFolder {
  /** The state of the daemon before. Undefined: there is none, or none could be read. */
  readonly saved: SavedState | undefined
  readonly sink: StateSink
  /** Seconds since boot when the clock showed 0. */
  readonly bootAtZero: number
}

/** The state of the daemon before, read once at the start. */
export interface SavedState {
  /** Whether it was written since the machine booted. */
  readonly isThisBoot: boolean
  /** With labels as the present rules write them. */
  readonly numbers: readonly SavedNumber[]
  /** Texts by key. */
  readonly endpoints: ReadonlyMap<string, string>
  readonly sourceFiles: ReadonlyMap<string, string>
  readonly pairs: SavedPairs
  /** Seconds since the last record was written. */
  readonly age: number
}

/** Saved entries as columns, because a million objects would be too many. Rows are 0 to `count` - 1. */
export interface SavedPairs {
  readonly count: number
  endpoint(row: number): number
  /** End of the TTL in seconds since this boot; negative for a time before it. */
  until(row: number): number
  /** Seconds. */
  grace(row: number): number
  family(row: number): 4 | 6
  /** Octets that hold the address at `addressAt` and the name in wire form at `nameAt`. */
  octets(row: number): Uint8Array
  addressAt(row: number): number
  nameAt(row: number): number
  nameLength(row: number): number
  /** Gives the memory back. The columns must not be read afterwards. */
  free(): void
}

/** An identity: its number and the texts of its labels, sorted. */
export interface SavedNumber {
  readonly id: number
  readonly labels: readonly string[]
}

/** A document saved as text: an endpoint, or a source file that was in force. */
export interface SavedDocument {
  readonly kind: 'endpoint' | 'source-file'
  readonly key: string
  /** Undefined: the document is gone. */
  readonly text: string | undefined
}

/** The record of one entry. */
export interface PairRecord {
  /** Row in the entry table, 1 or more. */
  readonly row: number
  readonly endpoint: number
  /** End of the TTL, in seconds since boot. */
  readonly until: number
  /** Seconds from `until` to the end of the entry. */
  readonly grace: number
  readonly family: Family
  /** Holds the address of 4 or 16 octets at `addressAt`. */
  readonly octets: Uint8Array
  readonly addressAt: number
  /** Holds the lower-case name in wire form at `nameAt`, the final zero included. */
  readonly wire: Uint8Array
  readonly nameAt: number
  readonly nameLength: number
}

/** Takes records. None of these calls waits for the disk. */
export interface RecordSink {
  numbers(numbers: readonly SavedNumber[]): void
  /** Copies the octets before it returns. */
  pair(record: PairRecord): void
  /** A longer life of a pair that has a whole record. */
  until(row: number, until: number): void
  gone(row: number): void
  document(document: SavedDocument): void
}

/** An image of everything. It replaces all records that were written before it began. */
export interface ImageSink extends RecordSink {
  /** Whether records wait for the disk. The caller then continues later. */
  readonly isFull: boolean
  /** The image has everything, and so have the records of changes made meanwhile. It counts once the disk has it. */
  end(): void
  abandon(): void
}

export interface StateSink extends RecordSink {
  /** Writes numbers before it returns, so that each number in a kernel entry is on its way to the disk. The sink counts
   *  and reports what the disk refuses, and writes it into the next image. */
  numbers(numbers: readonly SavedNumber[]): void
  /** Whether records wait for the disk. The caller then continues later, except with `numbers`. */
  readonly isFull: boolean
  /** Sends all records so far to the disk. */
  flush(): void
  /** Set by the caller. The sink calls it when written records are lost and a new image is needed at once. */
  onLost: () => void
  /** Whether the disk refused something that no image has contained since. */
  readonly isBehind: boolean
  /** Whether a new image is worth its cost: the journal outgrew the last one, or the disk refused something. */
  readonly wantsImage: boolean
  /** Undefined while another image is being written, or when the disk refuses one. */
  beginImage(): ImageSink | undefined
}
