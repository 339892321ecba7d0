// Reads the records of format version 1, whose layouts stand in record-buffer.ts. Nothing is taken on trust although
// checksums are right: lengths, rows and names are looked at, and the first record that is not as it should be ends
// the frame. A pair costs some 50 ns and no memory.

import type { SavedDocument } from '../control/state-sink.ts'
import { LIMITS } from '../core/limits.ts'
import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'
import { DOCUMENT_KIND, RECORD } from './record-buffer.ts'
import type { PairPlace, RecordFault, RecordVisitor } from './record-visitor.ts'

/** The largest row that any configuration allows. */
export const ROW_MAX = LIMITS.pairs.max

const INT32_MAX = 2 ** 31 - 1
const DOCUMENT_KINDS: ReadonlyMap<number, SavedDocument['kind']> = new Map([
  [DOCUMENT_KIND.endpoint, 'endpoint'],
  [DOCUMENT_KIND['policy-file'], 'policy-file'],
])

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
    const length = readRecord(octets, view, at, end, place, visitor)
    if (length < 0) return { at, reason: EXPECTED[-length - 1] ?? '' }
    at += length
  }
  return undefined
}

/** What was expected, by the numbers below, which are negative because lengths are not. */
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

/** Octets of the record, or one of the negative numbers above. */
function readRecord(
  octets: Uint8Array,
  view: DataView,
  at: number,
  end: number,
  place: PairPlace,
  visitor: RecordVisitor,
): number {
  if (at + 8 > end) return SHORT
  switch (octets[at]!) {
    case RECORD.pair:
      return readPair(octets, view, at, end, place, visitor)
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

function readPair(
  octets: Uint8Array,
  view: DataView,
  at: number,
  end: number,
  place: PairPlace,
  visitor: RecordVisitor,
): number {
  if (at + 20 > end) return SHORT
  const family = octets[at + 1]!
  if (family !== 4 && family !== 6) return NO_FAMILY
  place.family = family
  place.nameLength = octets[at + 2]!
  place.row = view.getUint32(at + 4, true)
  place.endpoint = view.getUint32(at + 8, true)
  place.until = view.getInt32(at + 12, true)
  place.grace = view.getUint32(at + 16, true)
  place.addressAt = at + 20
  place.nameAt = at + (family === 4 ? 24 : 36)
  if (place.row === 0 || place.row > ROW_MAX) return NO_ROW
  if (place.endpoint > INT32_MAX || place.grace > INT32_MAX) return NO_ENDPOINT
  if (place.nameAt + place.nameLength > end) return SHORT
  if (!isName(octets, place.nameAt, place.nameLength)) return NO_NAME
  visitor.pair(place)
  return place.nameAt + place.nameLength - at
}

/** Whether there is a name in wire form of exactly so many octets (RFC 1035 3.1). */
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
  const zeros = { row: 0, endpoint: 0, until: 0, grace: 0, addressAt: 0, nameAt: 0, nameLength: 0 }
  return { ...zeros, family: 4 }
}
