// This file has the layout of every image and journal: a header of 64 octets, then frames, all little-endian. The header is the same in
// every format version, so that an older program recognizes the file of a newer one. Each version has its own records inside frames
// (record-reader.ts). The tables give offset, length and content.
//
//   0  8 "ngstate\0"           24  4 flags: 1 = there was no state before this file
//   8  2 format version        28  4 seconds since boot, when the file was begun
//  10  2 1 image, 2 journal    32  8 wall clock, when the file was begun, milliseconds (float64)
//  12  4 label rules           40 16 boot id
//  16  4 generation            56  4 length of the journal before this one in the same run, octets
//  20  4 run                   60  4 crc32 of octets 0 to 59
//
// A run is an unbroken sequence of records. The journals of a run follow each other, and row numbers mean the same in all of them. The
// number of a run is the generation of its first journal.
//
// A frame contains what one write appended:
//
//   0  4 octets of records     16  4 crc32 of the records
//   4  4 seconds since boot    20  4 crc32 of octets 0 to 19
//   8  8 wall clock, ms        24    records
//
// Both checksums of a frame begin with the checksum of the file's header, so that a frame of another file is refused. A file that ends
// inside a frame was cut, for example by a kill of its process. The checksum of the frame's head tells a cut file from a damaged one.

import { crc32 } from 'node:zlib'
import type { Stamp } from '../stamp.ts'

export const HEADER_OCTETS = 64
/** The format version that this program writes. */
export const FORMAT_VERSION = 1

const MAGIC = Uint8Array.from([0x6e, 0x67, 0x73, 0x74, 0x61, 0x74, 0x65, 0])
const HEADER_CHECKED_OCTETS = 60
const STARTS_EMPTY = 1

export type FileKind = 'image' | 'journal'

export interface FileHeader {
  readonly version: number
  readonly kind: FileKind
  readonly labelRules: number
  readonly generation: number
  readonly run: number
  /** True if there was no state before this file. This journal and the later ones then have everything. */
  readonly startsEmpty: boolean
  readonly begun: Stamp
  /** 16 octets. All zero when the boot is unknown. */
  readonly bootId: Uint8Array
  /** Length of the journal before this one in the same run, in octets. 0 when there is none. */
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
  view.setUint32(HEADER_CHECKED_OCTETS, crc32(octets.subarray(0, HEADER_CHECKED_OCTETS)), true)
  return octets
}

/** Decodes a header. `seed`: the checksum of the header, with which the checksums of the frames begin. */
export function decodeHeader(octets: Uint8Array): HeaderResult {
  if (octets.length < HEADER_OCTETS) {
    return bad(`found ${octets.length} octets, expected a header of ${HEADER_OCTETS}`)
  }
  if (MAGIC.some((octet, i) => octets[i] !== octet)) {
    return bad('expected the mark of a state file')
  }
  const view = new DataView(octets.buffer, octets.byteOffset, HEADER_OCTETS)
  const seed = view.getUint32(HEADER_CHECKED_OCTETS, true)
  if (crc32(octets.subarray(0, HEADER_CHECKED_OCTETS)) !== seed) {
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

export const FRAME_HEAD_OCTETS = 24
/** A frame has at most this many octets of records. A usual frame has about 256 KiB. */
export const FRAME_RECORDS_MAX = 32 * 2 ** 20

const HEAD_CHECKED_OCTETS = 20

/** Writes the head of a frame. `octets` has FRAME_HEAD_OCTETS of room, and then the records. */
export function sealFrame(octets: Uint8Array, stamp: Stamp, seed: number): void {
  const view = new DataView(octets.buffer, octets.byteOffset, FRAME_HEAD_OCTETS)
  view.setUint32(0, octets.length - FRAME_HEAD_OCTETS, true)
  view.setUint32(4, stamp.bootSeconds, true)
  view.setFloat64(8, stamp.wallMs, true)
  view.setUint32(16, crc32(octets.subarray(FRAME_HEAD_OCTETS), seed), true)
  view.setUint32(HEAD_CHECKED_OCTETS, crc32(octets.subarray(0, HEAD_CHECKED_OCTETS), seed), true)
}

export type FrameResult =
  | { readonly kind: 'ok'; readonly stamp: Stamp; readonly start: number; readonly end: number }
  | { readonly kind: 'end' }
  /** The file ends inside the frame. */
  | { readonly kind: 'cut'; readonly reason: string }
  | { readonly kind: 'bad'; readonly reason: string }

/** Checks the frame at `at`. The records of a good frame are between `start` and `end`. Reads each octet of the frame once. */
export function checkFrame(octets: Uint8Array, at: number, seed: number): FrameResult {
  const left = octets.length - at
  if (left === 0) return { kind: 'end' }
  if (left < FRAME_HEAD_OCTETS) {
    return {
      kind: 'cut',
      reason: `found ${left} octets, expected the ${FRAME_HEAD_OCTETS} of a frame's head`,
    }
  }
  const view = new DataView(octets.buffer, octets.byteOffset + at, FRAME_HEAD_OCTETS)
  const head = octets.subarray(at, at + HEAD_CHECKED_OCTETS)
  if (crc32(head, seed) !== view.getUint32(HEAD_CHECKED_OCTETS, true)) {
    // After a loss of power, a file system can leave zeros after the last write.
    const zeros = octets.subarray(at).every((octet) => octet === 0)
    if (zeros) return { kind: 'cut', reason: 'found only zeros, expected a frame' }
    return { kind: 'bad', reason: "the checksum of a frame's head is wrong" }
  }
  const frame = frameAt(octets, at)
  const length = frame.end - frame.start
  if (length === 0 || length > FRAME_RECORDS_MAX) {
    return {
      kind: 'bad',
      reason: `found a frame of ${length} octets, expected 1 to ${FRAME_RECORDS_MAX}`,
    }
  }
  if (frame.end > octets.length) {
    const found = octets.length - frame.start
    return { kind: 'cut', reason: `found ${found} octets of a frame, expected ${length}` }
  }
  if (crc32(octets.subarray(frame.start, frame.end), seed) !== view.getUint32(16, true)) {
    return { kind: 'bad', reason: 'the checksum of a frame is wrong' }
  }
  if (!Number.isFinite(frame.stamp.wallMs)) return { kind: 'bad', reason: 'expected a time' }
  return { kind: 'ok', ...frame }
}

/** Returns the place of a frame that `checkFrame` accepted. */
export function frameAt(
  octets: Uint8Array,
  at: number,
): { readonly stamp: Stamp; readonly start: number; readonly end: number } {
  const view = new DataView(octets.buffer, octets.byteOffset + at, FRAME_HEAD_OCTETS)
  const start = at + FRAME_HEAD_OCTETS
  return {
    stamp: { bootSeconds: view.getUint32(4, true), wallMs: view.getFloat64(8, true) },
    start,
    end: start + view.getUint32(0, true),
  }
}
