// This file declares the port to the state folder, which holds the state that one daemon saves for the next one. `src/state` implements
// the port on disk. In the folder an entry (endpoint, name, address) is called a pair, as in `limits.pairs`.
//
// Every record has a key, and the last record of a key is valid. A record can therefore be written twice, and an image of everything can
// be written while other records are written. The key of a pair is its row in the entry table. The next daemon does not use these row
// numbers; they only say which records are about the same pair.
//
// Times are whole seconds since boot by the kernel's clock. No program can set this clock, so the next process can use the same times.
// The folder also keeps what a process needs to translate these times after a reboot.

import type { Family } from '../core/ip.ts'

/** The state folder of a daemon. */
export interface StateFolder {
  /** The state of the daemon before. Undefined: the folder has no state that could be read. */
  readonly saved: SavedState | undefined
  readonly sink: StateSink
  /** Seconds from the boot to the moment at which the daemon's clock showed 0. */
  readonly bootAtZero: number
}

/** The state of the daemon before, read once at the start. */
export interface SavedState {
  /** True if the state was written after the last boot of the machine. */
  readonly isThisBoot: boolean
  /** Identities. Their labels were translated to the present label rules. */
  readonly numbers: readonly SavedNumber[]
  /** Texts of the endpoint documents, by key. */
  readonly endpoints: ReadonlyMap<string, string>
  /** Texts of the source files, by path. */
  readonly sourceFiles: ReadonlyMap<string, string>
  readonly pairs: SavedPairs
  /** Seconds since the last record was written. */
  readonly age: number
}

/** Saved entries as columns, because a million objects would be too many. Rows are 0 to `count` - 1. */
export interface SavedPairs {
  readonly count: number
  endpoint(row: number): number
  /** End of the TTL in seconds since this boot. Negative for a time before this boot. */
  until(row: number): number
  /** Grace in seconds. */
  grace(row: number): number
  family(row: number): 4 | 6
  /** An array that has the address at `addressAt(row)` and the name in wire form at `nameAt(row)`. */
  octets(row: number): Uint8Array
  addressAt(row: number): number
  nameAt(row: number): number
  nameLength(row: number): number
  /** Frees the memory. The columns must not be read after this call. */
  free(): void
}

/** An identity: the number and the texts of its labels, in alphabetical order. */
export interface SavedNumber {
  readonly id: number
  readonly labels: readonly string[]
}

/** A document saved as text. It is an endpoint, or a source file that was in force. */
export interface SavedDocument {
  readonly kind: 'endpoint' | 'source-file'
  readonly key: string
  /** Undefined: the document was removed. */
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
  /** An array that has the address, 4 or 16 octets, at `addressAt`. */
  readonly octets: Uint8Array
  readonly addressAt: number
  /** An array that has the lower-case name in wire form, with the final zero, at `nameAt`. */
  readonly wire: Uint8Array
  readonly nameAt: number
  readonly nameLength: number
}

/** Takes records. No call waits until the disk has stored a record. */
export interface RecordSink {
  numbers(numbers: readonly SavedNumber[]): void
  /** Takes the whole record of a pair. Copies its octets before it returns. */
  pair(record: PairRecord): void
  /** Takes the new end of the TTL of a pair that has a whole record. */
  until(row: number, until: number): void
  /** Takes the removal of a pair. */
  gone(row: number): void
  document(document: SavedDocument): void
}

/** An image of the whole state. It replaces all records that were written before the image began. */
export interface ImageSink extends RecordSink {
  /** True while too many records wait for the disk. The caller then continues later. */
  readonly isFull: boolean
  /**
   * Ends the image. The caller must have given the image a record of everything, and the sink a record of every change since the image
   * began. The image becomes valid when the disk has stored all of these records.
   */
  end(): void
  /** Drops the unfinished image. */
  abandon(): void
}

export interface StateSink extends RecordSink {
  /**
   * Writes numbers to the file before it returns. So a number is in the file before a kernel entry has it. If the disk refuses them, the
   * sink counts and reports this, and the next image has them.
   */
  numbers(numbers: readonly SavedNumber[]): void
  /** True while too many records wait for the disk. The caller then continues later, but gives `numbers` at once. */
  readonly isFull: boolean
  /** Begins to write all records that wait. */
  flush(): void
  /** Set by the caller. The sink calls it when written records are lost and a new image is needed at once. */
  onLost: () => void
  /** True if the disk refused or lost records, and no image was finished since. */
  readonly isBehind: boolean
  /** True if a new image is needed: the journal is longer than the last image, or the disk refused or lost records. */
  readonly wantsImage: boolean
  /** Begins an image. Returns undefined while another image is being written, or when the disk refuses a new one. */
  beginImage(): ImageSink | undefined
}
