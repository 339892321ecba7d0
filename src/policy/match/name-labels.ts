// NameLabels splits a name into its DNS labels for matching. (In this file, every label is a DNS label.) In one pass, `read` finds where
// each label begins and computes its hash. It also checks that every octet is in the class of patterns, [a-z0-9_-] (docs/spec/semantics
// 1). Each `read` overwrites the arrays, so one object can serve any number of names, one at a time.
//
// Names are in lower case and in wire format: labels with their length in front, and a final zero octet (RFC 1035 3.1).

import { drawKey } from '../../core/tables/keyed-hash.ts'
import { LABEL_OCTETS_MAX } from '../../core/name.ts'

/** The most labels that fit in 255 octets. */
export const LABELS_MAX = 127

/** A secret, so that no author of policies can choose labels with equal hashes. */
const HASH_START = drawKey().low
const HASH_FACTOR = 0x01000193

/** 1 for the octets in the class of patterns: those that `*` stands for and that literals are made of. */
const IN_CLASS = Uint8Array.from({ length: 256 }, (_, octet) =>
  /[a-z0-9_-]/.test(String.fromCharCode(octet)) ? 1 : 0,
)

export class NameLabels {
  /** The offset of the length octet of each label in the wire, leftmost label first. */
  readonly starts = new Int32Array(LABELS_MAX)
  /** The `labelHash` of each label. */
  readonly hashes = new Int32Array(LABELS_MAX)

  /** Splits the name at `offset`. Returns the number of its labels, or -1 if an octet is outside of the class. */
  read(wire: Uint8Array, offset: number): number {
    const { starts, hashes } = this
    let count = 0
    let at = offset
    for (let length = wire[at]!; length !== 0; length = wire[at]!) {
      // This also stops at a compression pointer and at the end of the array. A valid name has neither.
      if (!(length <= LABEL_OCTETS_MAX) || count === LABELS_MAX) return -1
      starts[count] = at
      const end = at + length
      let hash = HASH_START
      let fits = 1
      while (at < end) {
        const octet = wire[++at]!
        fits &= IN_CLASS[octet]!
        hash = Math.imul(hash ^ octet, HASH_FACTOR)
      }
      if (fits === 0) return -1
      hashes[count++] = hash
      at++
    }
    return count
  }
}

/** Hashes a label by FNV-1a from a secret start. There is no final mix, because LabelTrie mixes the hash before it uses it. */
export function labelHash(octets: Uint8Array, offset: number, length: number): number {
  let hash = HASH_START
  for (let i = offset; i < offset + length; i++) hash = Math.imul(hash ^ octets[i]!, HASH_FACTOR)
  return hash
}
