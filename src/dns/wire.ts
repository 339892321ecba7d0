// These functions read integers and names from a message. The message is the octets from `start` to `end` of the array `buf`, and all
// offsets are offsets in `buf`. No function allocates or throws. A fault is a negative result.
//
// Names are read strictly (RFC 1035 4.1.4, RFC 9267). A pointer must lead to an offset after the header's 12 octets and before the
// DNS labels in front of the pointer. So each jump leads backwards, and a loop is impossible.
// Cost: at most 255 octets and 127 jumps per name.

import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'

export const HEADER_OCTETS = 12
/** The length of the longest message, because TCP has two octets of length (RFC 1035 4.2.2). */
export const MESSAGE_OCTETS_MAX = 65535
/** The largest number of jumps in one name. A name has at most 127 DNS labels, and no useful compression jumps twice for one. */
export const POINTER_HOPS_MAX = 127
/** Type, class, TTL and RDLENGTH, between a record's owner and its RDATA. */
export const RECORD_FIXED_OCTETS = 10

/** The message ends inside the name. */
export const FAULT_BOUNDS = -1
/** The name has a DNS label of type 01 or 10 (RFC 6891 5: withdrawn or never assigned). */
export const FAULT_LABEL = -2
/** A pointer leads into the header, to itself or forward, or the name has too many pointers. */
export const FAULT_POINTER = -3
/** The name has more than 255 octets. */
export const FAULT_LENGTH = -4

/** The lower case of each octet, for ASCII letters only (RFC 4343). */
export const LOWER = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet >= 0x41 && octet <= 0x5a ? octet + 32 : octet,
)

export function u16(buf: Uint8Array, at: number): number {
  return (buf[at]! << 8) | buf[at + 1]!
}

export function u32(buf: Uint8Array, at: number): number {
  return ((buf[at]! << 24) | (buf[at + 1]! << 16) | (buf[at + 2]! << 8) | buf[at + 3]!) >>> 0
}

export function putU16(buf: Uint8Array, at: number, value: number): void {
  buf[at] = value >>> 8
  buf[at + 1] = value
}

/**
 * Reads the name at `at` into `out` (255 octets) in lower case, without compression, with the final zero.
 * Returns the offset after the name (after its first pointer, if it has one), or a fault. After a fault, the octets in `out` are invalid.
 */
export function readName(
  buf: Uint8Array,
  start: number,
  end: number,
  at: number,
  out: Uint8Array,
): number {
  let next = -1
  let part = at
  let length = 0
  let hops = 0
  for (;;) {
    if (at >= end) return FAULT_BOUNDS
    const octet = buf[at]!
    if (octet > LABEL_OCTETS_MAX) {
      const target = pointerTarget(buf, start, end, at, part)
      if (target < 0) return target
      if (++hops > POINTER_HOPS_MAX) return FAULT_POINTER
      if (next < 0) next = at + 2
      at = part = target
      continue
    }
    if (at + octet >= end) return FAULT_BOUNDS
    if (octet === 0) {
      if (length >= NAME_OCTETS_MAX) return FAULT_LENGTH
      out[length] = 0
      return next < 0 ? at + 1 : next
    }
    if (length + octet + 1 >= NAME_OCTETS_MAX) return FAULT_LENGTH
    out[length] = octet
    for (let i = 1; i <= octet; i++) out[length + i] = LOWER[buf[at + i]!]!
    length += octet + 1
    at += octet + 1
  }
}

/** Returns the same as `readName`, with the same checks, but does not copy the name. */
export function skipName(buf: Uint8Array, start: number, end: number, at: number): number {
  let next = -1
  let part = at
  let length = 0
  let hops = 0
  for (;;) {
    if (at >= end) return FAULT_BOUNDS
    const octet = buf[at]!
    if (octet > LABEL_OCTETS_MAX) {
      const target = pointerTarget(buf, start, end, at, part)
      if (target < 0) return target
      if (++hops > POINTER_HOPS_MAX) return FAULT_POINTER
      if (next < 0) next = at + 2
      at = part = target
      continue
    }
    length += octet + 1
    if (length > NAME_OCTETS_MAX) return FAULT_LENGTH
    at += octet + 1
    if (octet === 0) return next < 0 ? at : next
  }
}

/** Returns the offset after the question at `at`, or a fault. */
export function skipQuestion(buf: Uint8Array, start: number, end: number, at: number): number {
  const next = skipName(buf, start, end, at)
  if (next < 0) return next
  return next + 4 > end ? FAULT_BOUNDS : next + 4
}

/** Returns the target of the pointer at `at`, or a fault. `part` is the offset of the first DNS label in front of the pointer. */
function pointerTarget(
  buf: Uint8Array,
  start: number,
  end: number,
  at: number,
  part: number,
): number {
  const octet = buf[at]!
  if (octet < 0xc0) return FAULT_LABEL
  if (at + 1 >= end) return FAULT_BOUNDS
  const target = start + (((octet & 0x3f) << 8) | buf[at + 1]!)
  return target < start + HEADER_OCTETS || target >= part ? FAULT_POINTER : target
}

/** Returns true if `length` octets of two arrays are equal. */
export function sameOctets(
  a: Uint8Array,
  aAt: number,
  b: Uint8Array,
  bAt: number,
  length: number,
): boolean {
  for (let i = 0; i < length; i++) if (a[aAt + i]! !== b[bAt + i]!) return false
  return true
}
