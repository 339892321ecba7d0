// This file computes hashes for tables, under a secret that every process draws at its start. A client that chooses names or addresses
// cannot know which of them share a bucket, so a client cannot make a table's chains long on purpose. A hash must not leave the process:
// it is in no state file, it goes to no successor, and it is in no kernel map.
//
// Octets are hashed with HalfSipHash-1-3 (Aumasson and Bernstein, SipHash, 2012): one round on 32-bit words for each 4 octets, and three
// rounds at the end. Keys that collide under one secret do not collide under another. A hash that multiplies once per octet does not have
// this property. Pairs of numbers are hashed by simple tabulation (Patrascu and Thorup, 2012), with a table of random words for each of
// the 8 octets. Tabulation has no arithmetic that keeps differences between keys unchanged, and linear probes stay short.
//
// Cost: about 30 ns for 20 octets, and 4 ns for a pair. The tables need 8 KiB.

import { randomFillSync } from 'node:crypto'

/** 64 secret bits, as two words. */
export interface HashKey {
  readonly low: number
  readonly high: number
}

/** A pair of 32-bit numbers has 8 octets. */
const PAIR_OCTETS = 8

/** 8 tables of 256 words, one for each octet of a pair. */
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

/** Returns a hash of 32 bits; any of the bits can be a table index. The octets of a name include its final zero. */
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

/** Returns a hash of two numbers of 32 bits. Any bits of the hash can be a table index. */
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

/** Returns 4 octets as a number, the first octet in the lowest bits. */
function wordOf(octets: Uint8Array, at: number): number {
  return octets[at]! | (octets[at + 1]! << 8) | (octets[at + 2]! << 16) | (octets[at + 3]! << 24)
}

/** Returns the last 0 to 3 octets as a number, with the length in the 8 highest bits. */
function lastWord(octets: Uint8Array, at: number, length: number): number {
  let word = length << 24
  for (let i = 0; i < (length & 3); i++) word |= octets[at + i]! << (i << 3)
  return word
}
