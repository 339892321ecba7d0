// Reading integers and names from a message that lies somewhere in a slab. A message is (buf, start, end);
// offsets given and returned are offsets in `buf`. Nothing here allocates or throws: a fault is negative.
//
// Names are read strictly (RFC 1035 4.1.4, RFC 9267): a pointer must go backwards, to before the run of labels
// that holds it and behind the 12 octets of the header; so each jump lowers the position and no loop exists.
// Cost: at most 255 octets and 127 jumps a name.

import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'

export const HEADER_OCTETS = 12
/** Longest message: what two octets of length can say (RFC 1035 4.2.2). */
export const MESSAGE_OCTETS_MAX = 65535
/** Jumps in one name. 127 labels fit into 255 octets and no sane compressor jumps twice for one label. */
export const POINTER_HOPS_MAX = 127
/** Type, class, TTL and RDLENGTH, between a record's owner and its RDATA. */
export const RECORD_FIXED_OCTETS = 10

/** Octets are missing: the message ends inside the name. */
export const FAULT_BOUNDS = -1
/** Label types 01 and 10 (RFC 6891 5: withdrawn or never given out). */
export const FAULT_LABEL = -2
/** A pointer into the header, to itself or forward, or too many of them. */
export const FAULT_POINTER = -3
/** More than 255 octets in all. */
export const FAULT_LENGTH = -4

/** Lower case of each octet, ASCII only (RFC 4343). */
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
 * Reads the name at `at` into `out` (255 octets) without compression and in lower case, final zero included.
 * Returns the offset behind the name's own octets, or a fault; after a fault `out` holds rubbish.
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

/** As `readName`, with the same checks, but without a copy of the name. */
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

/** The offset behind the question at `at`, or a fault. */
export function skipQuestion(buf: Uint8Array, start: number, end: number, at: number): number {
  const next = skipName(buf, start, end, at)
  if (next < 0) return next
  return next + 4 > end ? FAULT_BOUNDS : next + 4
}

/** Where the pointer at `at` leads, or a fault; `part` is where the run of labels before it began. */
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

/** Whether two runs of octets of that length are equal. */
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
