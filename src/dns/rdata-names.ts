// Which RDATA has names in it that may be compressed or that names behind them may point into: the types of RFC 1035, those
// whose names receivers must be ready to expand (RFC 3597 4), and later ones that only others point into. Names in
// the RDATA of any other type are opaque octets and no sender may point from there (RFC 3597 4).

import { TYPE_HTTPS, TYPE_SVCB } from './codes.ts'

const TYPES = 66
const NONE = -1
const NAPTR = 35
/** Octets in front of the first name, by type. */
const BEFORE = new Int8Array(TYPES).fill(NONE)
/** NS, MD, MF, CNAME, SOA, MB, MG, MR, PTR, MINFO, RP, NXT, DNAME, NSEC. */
for (const type of [2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 17, 30, 39, 47]) BEFORE[type] = 0
/** MX, AFSDB, RT, PX, KX. */
for (const type of [15, 18, 21, 26, 36, TYPE_SVCB, TYPE_HTTPS]) BEFORE[type] = 2
/** SRV. */
BEFORE[33] = 6
/** SIG, RRSIG. */
for (const type of [24, 46]) BEFORE[type] = 18
/** SOA, MINFO, RP, PX. */
const TWO_NAMES: readonly number[] = [6, 14, 17, 26]

/** Names that stand one behind the other in the RDATA of a type. */
export function namesIn(type: number): number {
  if (type === NAPTR) return 1
  if (type >= TYPES || BEFORE[type] === NONE) return 0
  return TWO_NAMES.includes(type) ? 2 : 1
}

/** Where the first name begins, of a type that has one; may lie at or behind `end`: then there is none. */
export function firstNameAt(type: number, buf: Uint8Array, data: number, end: number): number {
  if (type !== NAPTR) return data + BEFORE[type]!
  // RFC 3403 4.1: order, preference, and three character-strings.
  let at = data + 4
  for (let i = 0; i < 3 && at < end; i++) at += buf[at]! + 1
  return at
}
