// This file lists the types whose RDATA has names that can be compressed, or to which later names can point:
// - the types of RFC 1035;
// - the types whose names receivers must be able to expand (RFC 3597 4);
// - later types to whose names other names can point.
// RDATA of any other type is opaque, and a sender must not point into it (RFC 3597 4).

import { TYPE_HTTPS, TYPE_SVCB } from './codes.ts'

const TYPES = 66
const NONE = -1
const NAPTR = 35
/** The number of octets before the first name, by type. */
const BEFORE = new Int8Array(TYPES).fill(NONE)
/** NS, MD, MF, CNAME, SOA, MB, MG, MR, PTR, MINFO, RP, NXT, DNAME, NSEC. */
for (const type of [2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 17, 30, 39, 47]) BEFORE[type] = 0
/** MX, AFSDB, RT, PX, KX, SVCB, HTTPS. */
for (const type of [15, 18, 21, 26, 36, TYPE_SVCB, TYPE_HTTPS]) BEFORE[type] = 2
/** SRV. */
BEFORE[33] = 6
/** SIG, RRSIG. */
for (const type of [24, 46]) BEFORE[type] = 18
/** SOA, MINFO, RP, PX. */
const TWO_NAMES: readonly number[] = [6, 14, 17, 26]

/** Returns the number of consecutive names in the RDATA of a type: 0, 1 or 2. */
export function namesIn(type: number): number {
  if (type === NAPTR) return 1
  if (type >= TYPES || BEFORE[type] === NONE) return 0
  return TWO_NAMES.includes(type) ? 2 : 1
}

/** Returns the offset of the first name, for a type with names. If it is `end` or more, this RDATA has no name. */
export function firstNameAt(type: number, buf: Uint8Array, data: number, end: number): number {
  if (type !== NAPTR) return data + BEFORE[type]!
  // RFC 3403 4.1: order, preference, and three character-strings.
  let at = data + 4
  for (let i = 0; i < 3 && at < end; i++) at += buf[at]! + 1
  return at
}
