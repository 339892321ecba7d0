// A file is its header and frames; a frame is what one write put there. Layout, little-endian:
//
//   0  4 octets of records     16  4 crc32 of the records
//   4  4 seconds since boot    20  4 crc32 of octets 0 to 19
//   8  8 wall clock, ms        24    records
//
// Both checksums begin with that of the file's header, so that a frame of another file is not taken for one of this.
// A head of its own tells a file that ends early (a process was killed while it wrote) from one that is damaged.

import { crc32 } from 'node:zlib'
import type { Stamp } from '../stamp.ts'

export const FRAME_HEAD_OCTETS = 24
/** Most octets of records in one frame; a frame of ordinary records is some 256 KiB. */
export const FRAME_RECORDS_MAX = 32 * 2 ** 20

const CHECKED_OCTETS = 20

/** Fills in the head in front of the records. `octets` has room for it. */
export function sealFrame(octets: Uint8Array, stamp: Stamp, seed: number): void {
  const view = new DataView(octets.buffer, octets.byteOffset, FRAME_HEAD_OCTETS)
  view.setUint32(0, octets.length - FRAME_HEAD_OCTETS, true)
  view.setUint32(4, stamp.bootSeconds, true)
  view.setFloat64(8, stamp.wallMs, true)
  view.setUint32(16, crc32(octets.subarray(FRAME_HEAD_OCTETS), seed), true)
  view.setUint32(CHECKED_OCTETS, crc32(octets.subarray(0, CHECKED_OCTETS), seed), true)
}

export type FrameResult =
  | { readonly kind: 'ok'; readonly stamp: Stamp; readonly start: number; readonly end: number }
  | { readonly kind: 'end' }
  /** The file ends inside the frame. */
  | { readonly kind: 'cut'; readonly reason: string }
  | { readonly kind: 'bad'; readonly reason: string }

/** The frame at `at`; its records are between `start` and `end`. Reads each octet of it once. */
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
  const head = octets.subarray(at, at + CHECKED_OCTETS)
  if (crc32(head, seed) !== view.getUint32(CHECKED_OCTETS, true)) {
    // File systems may leave zeros behind what was written when power is lost.
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

/** A frame that `checkFrame` called good. */
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
