// Where what must outlive the process goes: a port, written by `StateRecorder`, kept on disk by src/state. Everything is a
// record about a key, and the last record about a key holds, so a record may be written twice, and an image of everything
// may be taken while records go on. The key of a pair is the row that it had in the table of pairs: it means nothing but
// "the same record" to whoever reads it.
//
// Times are whole seconds of the kernel's clock since boot, which no one sets: the same for the next process, and the sink
// adds what a process after a reboot needs to translate them.

import type { Family } from '../core/ip.ts'

/** An identity: its number and the texts of its labels, sorted. */
export interface SavedNumber {
  readonly id: number
  readonly labels: readonly string[]
}

/** A document that is kept as text: an endpoint, a file of a source that was in force. */
export interface SavedDocument {
  readonly kind: 'endpoint' | 'source-file'
  readonly key: string
  /** Undefined: it is no more. */
  readonly text: string | undefined
}

/** What is written of a pair: (endpoint, name, address). */
export interface PairRecord {
  /** Row in the table of pairs, 1 or more. */
  readonly row: number
  readonly endpoint: number
  /** End of the TTL, in seconds since boot. */
  readonly until: number
  /** Seconds from then until it goes. */
  readonly grace: number
  readonly family: Family
  /** The address is at `addressAt`, 4 or 16 octets. */
  readonly octets: Uint8Array
  readonly addressAt: number
  /** The name in wire form and lower case is at `nameAt`, the final zero included. */
  readonly wire: Uint8Array
  readonly nameAt: number
  readonly nameLength: number
}

/** Takes records. None of these calls waits for the disk. */
export interface RecordSink {
  numbers(numbers: readonly SavedNumber[]): void
  /** Octets are copied before this returns. */
  pair(record: PairRecord): void
  /** A pair of which a whole record was written lives longer. */
  until(row: number, until: number): void
  gone(row: number): void
  document(document: SavedDocument): void
}

/** An image of everything, which takes the place of all that was written before it began. */
export interface ImageSink extends RecordSink {
  /** Whether what was given waits for the disk: the caller gives more later. */
  readonly isFull: boolean
  /** All is given, and so are the records of changes until now: it counts as soon as the disk has it. */
  end(): void
  abandon(): void
}

export interface StateSink extends RecordSink {
  /** Writes numbers before it returns: no kernel entry carries a number that is not on its way to the disk. What the disk
   *  refuses is counted and told by the sink, and goes into the next image. */
  numbers(numbers: readonly SavedNumber[]): void
  /** Whether what was given waits for the disk: the caller gives more later, but for what `numbers` takes. */
  readonly isFull: boolean
  /** What was given so far is to go to the disk. */
  flush(): void
  /** Set by who gives: called when what was written is gone, and an image is wanted at once. */
  onLost: () => void
  /** Whether the disk refused something that no image has made good. */
  readonly isBehind: boolean
  /** Whether a new image is worth its cost: the journal outgrew the last one, or the disk refused something. */
  readonly wantsImage: boolean
  /** Undefined while another one is being written, or the disk refuses it. */
  beginImage(): ImageSink | undefined
}
