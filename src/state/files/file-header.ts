// The 64 octets at the front of every file of the state folder, little-endian. They stand the same in every format
// version, so that an older program can at least say that a newer one wrote the file; what comes behind them is the
// version's own (readers.ts).
//
//   0  8 "ngstate\0"           24  4 flags: 1 = before this there was nothing
//   8  2 format version        28  4 seconds since boot, when it was begun
//  10  2 1 image, 2 journal    32  8 wall clock then, milliseconds (float64)
//  12  4 label rules           40 16 boot id
//  16  4 generation            56  4 octets of the journal before it in the same run
//  20  4 run                   60  4 crc32 of octets 0 to 59
//
// A run is an unbroken sequence of records: journals of one run follow each other, and rows mean the same in all of
// them. It is named by the generation that it began with.

import { crc32 } from 'node:zlib'
import type { Stamp } from '../stamp.ts'

export const HEADER_OCTETS = 64
/** What this version writes. */
export const FORMAT_VERSION = 1

const MAGIC = Uint8Array.from([0x6e, 0x67, 0x73, 0x74, 0x61, 0x74, 0x65, 0])
const CHECKED_OCTETS = 60
const STARTS_EMPTY = 1

export type FileKind = 'image' | 'journal'

export interface FileHeader {
  readonly version: number
  readonly kind: FileKind
  readonly labelRules: number
  readonly generation: number
  readonly run: number
  /** Whether nothing was known before: its journals alone are everything. */
  readonly startsEmpty: boolean
  readonly begun: Stamp
  /** 16 octets; all zero when it is not known. */
  readonly bootId: Uint8Array
  /** Octets of the journal before it in the same run, 0 when there is none. */
  readonly octetsBefore: number
}

export type HeaderResult =
  | { readonly kind: 'ok'; readonly header: FileHeader; readonly seed: number }
  | { readonly kind: 'bad'; readonly reason: string }

export function encodeHeader(header: FileHeader): Uint8Array {
  const octets = new Uint8Array(HEADER_OCTETS)
  const view = new DataView(octets.buffer)
  octets.set(MAGIC)
  view.setUint16(8, header.version, true)
  view.setUint16(10, header.kind === 'image' ? 1 : 2, true)
  view.setUint32(12, header.labelRules, true)
  view.setUint32(16, header.generation, true)
  view.setUint32(20, header.run, true)
  view.setUint32(24, header.startsEmpty ? STARTS_EMPTY : 0, true)
  view.setUint32(28, header.begun.bootSeconds, true)
  view.setFloat64(32, header.begun.wallMs, true)
  octets.set(header.bootId, 40)
  view.setUint32(56, header.octetsBefore, true)
  view.setUint32(CHECKED_OCTETS, crc32(octets.subarray(0, CHECKED_OCTETS)), true)
  return octets
}

/** `seed` is the checksum that those of the file's frames begin with. */
export function decodeHeader(octets: Uint8Array): HeaderResult {
  if (octets.length < HEADER_OCTETS) {
    return bad(`found ${octets.length} octets, expected a header of ${HEADER_OCTETS}`)
  }
  if (MAGIC.some((octet, i) => octets[i] !== octet)) {
    return bad('expected the mark of a state file')
  }
  const view = new DataView(octets.buffer, octets.byteOffset, HEADER_OCTETS)
  const seed = view.getUint32(CHECKED_OCTETS, true)
  if (crc32(octets.subarray(0, CHECKED_OCTETS)) !== seed) {
    return bad('the checksum of the header is wrong')
  }
  const kind = view.getUint16(10, true)
  const wallMs = view.getFloat64(32, true)
  if ((kind !== 1 && kind !== 2) || !Number.isFinite(wallMs)) {
    return bad(`found kind ${kind}, expected 1 (image) or 2 (journal)`)
  }
  const header: FileHeader = {
    version: view.getUint16(8, true),
    kind: kind === 1 ? 'image' : 'journal',
    labelRules: view.getUint32(12, true),
    generation: view.getUint32(16, true),
    run: view.getUint32(20, true),
    startsEmpty: (view.getUint32(24, true) & STARTS_EMPTY) !== 0,
    begun: { bootSeconds: view.getUint32(28, true), wallMs },
    bootId: octets.slice(40, 56),
    octetsBefore: view.getUint32(56, true),
  }
  return { kind: 'ok', header, seed }
}

function bad(reason: string): HeaderResult {
  return { kind: 'bad', reason }
}
