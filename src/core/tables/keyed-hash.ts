// Hashes for tables, under a secret that every process draws anew. A client that chooses names or addresses cannot know which of them
// share a bucket, so no table's chains get long on purpose. No hash may outlive or leave the process: no state file, no successor and
// no kernel map has one.
//
// Octets: HalfSipHash-1-3 (Aumasson and Bernstein, SipHash, 2012; a round on 32-bit words for each 4 octets, three at the end). Keys that
// collide under one secret do not collide under another, which a multiplication for each octet does not give.
// Pairs of numbers: simple tabulation (Patrascu and Thorup, 2012), a table of random words for each of the 8 octets. It has no arithmetic
// that passes differences on unchanged, and linear probing stays short.
//
// Cost: 20 octets about 30 ns, a pair 4 ns; 8 KiB of tables.

import { randomFillSync } from 'node:crypto'

/** 64 secret bits, as two words. */
export interface HashKey {
  readonly low: number
  readonly high: number
}

/** Octets of a pair of words, each with its table. */
const PAIR_OCTETS = 8

/** One table of 256 words for each octet of a pair. */
export type PairTables = Uint32Array

const PROCESS_KEY = drawKey()
const PROCESS_TABLES = drawPairTables()

export function drawKey(): HashKey {
  const [low = 0, high = 0] = randomFillSync(new Int32Array(2))
  return { low, high }
}

export function drawPairTables(): PairTables {
  return randomFillSync(new Uint32Array(PAIR_OCTETS * 256))
}

/** 32 bits, all of which serve as a table index; of names the final zero counts. */
export function hashOctets(
  octets: Uint8Array,
  offset: number,
  length: number,
  key: HashKey = PROCESS_KEY,
): number {
  let v0 = key.low
  let v1 = key.high
  let v2 = key.low ^ 0x6c796765
  let v3 = key.high ^ 0x74656462
  const last = offset + (length & ~3)
  for (let at = offset, rounds = (length >> 2) + 4; rounds > 0; rounds--, at += 4) {
    let word = 0
    if (at < last) word = wordOf(octets, at)
    else if (at === last) word = lastWord(octets, at, length)
    else if (rounds === 3) v2 ^= 0xff
    v3 ^= word
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= word
  }
  return (v1 ^ v3) >>> 0
}

/** Hash of two numbers of 32 bits, all bits of which serve as a table index. */
export function hashPair(a: number, b: number, tables: PairTables = PROCESS_TABLES): number {
  return (
    (tables[a & 0xff]! ^
      tables[0x100 | ((a >>> 8) & 0xff)]! ^
      tables[0x200 | ((a >>> 16) & 0xff)]! ^
      tables[0x300 | (a >>> 24)]! ^
      tables[0x400 | (b & 0xff)]! ^
      tables[0x500 | ((b >>> 8) & 0xff)]! ^
      tables[0x600 | ((b >>> 16) & 0xff)]! ^
      tables[0x700 | (b >>> 24)]!) >>>
    0
  )
}

/** 4 octets, the first lowest. */
function wordOf(octets: Uint8Array, at: number): number {
  return octets[at]! | (octets[at + 1]! << 8) | (octets[at + 2]! << 16) | (octets[at + 3]! << 24)
}

/** The up to 3 octets that are left, and above them the length. */
function lastWord(octets: Uint8Array, at: number, length: number): number {
  let word = length << 24
  for (let i = 0; i < (length & 3); i++) word |= octets[at + i]! << (i << 3)
  return word
}
