// What the daemon before knew, as its state folder has it: read once at the start.

import type { SavedNumber } from './state-sink.ts'

/** Pairs as columns, so that a million of them are no objects. Rows are 0 to `count` - 1. */
export interface SavedPairs {
  readonly count: number
  endpoint(row: number): number
  /** End of the TTL in seconds since this boot, negative when it was before it. */
  until(row: number): number
  /** Seconds. */
  grace(row: number): number
  family(row: number): 4 | 6
  /** Octets that hold the address at `addressAt` and the name in wire form at `nameAt`. */
  octets(row: number): Uint8Array
  addressAt(row: number): number
  nameAt(row: number): number
  nameLength(row: number): number
  /** Gives the memory back: nothing is read any more. */
  free(): void
}

export interface SavedState {
  /** Whether it was written since the machine came up. */
  readonly isThisBoot: boolean
  /** With labels as the rules of now make them. */
  readonly numbers: readonly SavedNumber[]
  /** Texts by key. */
  readonly endpoints: ReadonlyMap<string, string>
  readonly sourceFiles: ReadonlyMap<string, string>
  readonly pairs: SavedPairs
  /** Seconds since the last record was written. */
  readonly age: number
}
