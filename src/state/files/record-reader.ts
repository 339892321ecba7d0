// This file reads the records of a file, by format version. A version with another layout adds its reader to `READERS` and keeps the
// readers before it, so that an upgraded program reads the files it finds. A file whose version has no reader is not used.

import { LIMITS } from '../../core/limits.ts'
import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../../core/name.ts'
import type { SavedDocument } from '../../restore/state-port.ts'
import { DOCUMENT_KIND, RECORD } from './record-buffer.ts'

export interface RecordVisitor {
  pair(pair: PairPlace): void
  until(row: number, until: number): void
  gone(row: number): void
  number(id: number, labels: readonly string[]): void
  document(document: SavedDocument): void
  /** Called for the last record of an image. `journalOctets`: how many octets of its journal the image needs. */
  imageEnd(journalOctets: number): void
}

/** A pair in a file. There is one object, which the next record overwrites. */
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

/** Reads the records between `start` and `end`. Stops at the first fault, and returns it. */
export type RecordReader = (
  octets: Uint8Array,
  start: number,
  end: number,
  visitor: RecordVisitor,
) => RecordFault | undefined

export type Readers = Readonly<Record<number, RecordReader>>

export const READERS: Readers = { 1: readRecordsV1 }

/** Returns the newest version that has a reader. */
export function newestOf(readers: Readers): number {
  return Math.max(...Object.keys(readers).map(Number))
}

/** The largest row number under any configuration. */
export const ROW_MAX = LIMITS.pairs.max

const DOCUMENT_KINDS: ReadonlyMap<number, SavedDocument['kind']> = new Map([
  [DOCUMENT_KIND.endpoint, 'endpoint'],
  [DOCUMENT_KIND['source-file'], 'source-file'],
])

/**
 * Reads records of format version 1. record-buffer.ts has the layouts. Although the checksums are right, lengths, rows and names are
 * checked. The first bad record is returned as the fault. There can be a million pairs, so they have a loop of their own.
 */
export function readRecordsV1(
  octets: Uint8Array,
  start: number,
  end: number,
  visitor: RecordVisitor,
): RecordFault | undefined {
  const view = new DataView(octets.buffer, octets.byteOffset, octets.byteLength)
  const place = mkPlace()
  let at = start
  while (at < end) {
    at = readPairs(octets, at, end, place, visitor)
    if (at === end) break
    const length = readRecord(octets, view, at, end, visitor)
    if (length < 0) return { at, reason: EXPECTED[-length - 1] ?? '' }
    at += length
  }
  return undefined
}

/** The texts of the faults. The negative numbers below select a text: -1 the first. */
const EXPECTED: readonly string[] = [
  'expected a whole record',
  `expected a row of 1 to ${ROW_MAX}`,
  'expected family 4 or 6',
  'expected a name',
  'expected an endpoint and a time below 2^31',
  'found a record of an unknown kind',
]
const SHORT = -1
const NO_ROW = -2
const NO_FAMILY = -3
const NO_NAME = -4
const NO_ENDPOINT = -5
const NO_KIND = -6

/** Reads one record. Returns its length in octets, or one of the negative numbers above. */
function readRecord(
  octets: Uint8Array,
  view: DataView,
  at: number,
  end: number,
  visitor: RecordVisitor,
): number {
  if (at + 8 > end) return SHORT
  switch (octets[at]!) {
    case RECORD.pair:
      return faultOfPair(octets, at, end)
    case RECORD.until: {
      const row = view.getUint32(at + 4, true)
      if (at + 12 > end) return SHORT
      if (row === 0 || row > ROW_MAX) return NO_ROW
      visitor.until(row, view.getInt32(at + 8, true))
      return 12
    }
    case RECORD.gone: {
      const row = view.getUint32(at + 4, true)
      if (row === 0 || row > ROW_MAX) return NO_ROW
      visitor.gone(row)
      return 8
    }
    case RECORD.number:
      return readNumber(octets, view, at, end, visitor)
    case RECORD.document:
      return readDocument(octets, view, at, end, visitor)
    case RECORD.end:
      visitor.imageEnd(view.getUint32(at + 4, true))
      return 8
    default:
      return NO_KIND
  }
}

/** Reads consecutive pairs. Returns where the first record begins that is no pair or is bad, or `end`. */
function readPairs(
  octets: Uint8Array,
  start: number,
  end: number,
  place: PairPlace,
  visitor: RecordVisitor,
): number {
  let at = start
  while (at + 20 <= end && octets[at] === RECORD.pair) {
    const family = octets[at + 1]!
    const length = octets[at + 2]!
    const row = int32(octets, at + 4)
    const endpoint = int32(octets, at + 8)
    const grace = int32(octets, at + 16)
    const nameAt = at + (family === 4 ? 24 : 36)
    if (family !== 4 && family !== 6) break
    if (row <= 0 || row > ROW_MAX || endpoint < 0 || grace < 0) break
    if (nameAt + length > end || !isName(octets, nameAt, length)) break
    place.row = row
    place.endpoint = endpoint
    place.until = int32(octets, at + 12)
    place.grace = grace
    place.family = family
    place.addressAt = at + 20
    place.nameAt = nameAt
    place.nameLength = length
    visitor.pair(place)
    at = nameAt + length
  }
  return at
}

function int32(octets: Uint8Array, at: number): number {
  return octets[at]! | (octets[at + 1]! << 8) | (octets[at + 2]! << 16) | (octets[at + 3]! << 24)
}

/** Returns the fault, one of the negative numbers, of the pair at which `readPairs` stopped. */
function faultOfPair(octets: Uint8Array, at: number, end: number): number {
  const family = octets[at + 1]!
  if (at + 20 > end) return SHORT
  if (family !== 4 && family !== 6) return NO_FAMILY
  const row = int32(octets, at + 4)
  if (row <= 0 || row > ROW_MAX) return NO_ROW
  if (int32(octets, at + 8) < 0 || int32(octets, at + 16) < 0) return NO_ENDPOINT
  const nameEnd = at + (family === 4 ? 24 : 36) + octets[at + 2]!
  return nameEnd > end ? SHORT : NO_NAME
}

/** Returns true if a name in wire form of exactly `length` octets begins at `start` (RFC 1035 3.1). */
function isName(octets: Uint8Array, start: number, length: number): boolean {
  if (length === 0 || length > NAME_OCTETS_MAX) return false
  const last = start + length - 1
  let at = start
  while (at < last) {
    const label = octets[at]!
    if (label === 0 || label > LABEL_OCTETS_MAX) return false
    at += label + 1
  }
  return at === last && octets[last] === 0
}

function readNumber(
  octets: Uint8Array,
  view: DataView,
  start: number,
  end: number,
  visitor: RecordVisitor,
): number {
  const count = view.getUint16(start + 2, true)
  const labels: string[] = []
  let at = start + 8
  for (let i = 0; i < count; i++) {
    if (at + 2 > end) return SHORT
    const next = at + 2 + view.getUint16(at, true)
    if (next > end) return SHORT
    labels.push(textOf(octets, at + 2, next))
    at = next
  }
  visitor.number(view.getUint32(start + 4, true), labels)
  return at - start
}

function readDocument(
  octets: Uint8Array,
  view: DataView,
  at: number,
  end: number,
  visitor: RecordVisitor,
): number {
  if (at + 12 > end) return SHORT
  const kind = DOCUMENT_KINDS.get(octets[at + 1]!)
  if (kind === undefined) return NO_KIND
  const keyEnd = at + 12 + view.getUint32(at + 4, true)
  const textEnd = keyEnd + view.getUint32(at + 8, true)
  if (textEnd > end) return SHORT
  const key = textOf(octets, at + 12, keyEnd)
  const text = octets[at + 2] === 0 ? undefined : textOf(octets, keyEnd, textEnd)
  visitor.document({ kind, key, text })
  return textEnd - at
}

function textOf(octets: Uint8Array, start: number, end: number): string {
  return Buffer.from(octets.buffer, octets.byteOffset + start, end - start).toString()
}

function mkPlace(): PairPlace {
  return {
    row: 0,
    endpoint: 0,
    until: 0,
    grace: 0,
    family: 4,
    addressAt: 0,
    nameAt: 0,
    nameLength: 0,
  }
}
