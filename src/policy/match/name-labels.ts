// A wire name split for matching: where its labels are, and a hash of each, found in one pass that also
// checks every octet against the class of patterns, [a-z0-9_-] (docs/spec/semantics 1). The arrays are written by
// `read` and reused: one object serves any number of names, one at a time.
//
// Names are in wire form, length-prefixed labels and a final zero octet (RFC 1035 3.1), in lower case.

import { drawKey } from '../../core/tables/keyed-hash.ts'
import { LABEL_OCTETS_MAX } from '../../core/name.ts'

/** Most labels that fit in 255 octets. */
export const LABELS_MAX = 127

/** A secret, so that no author can write selectors whose labels share a bucket. */
const HASH_START = drawKey().low
const HASH_FACTOR = 0x01000193

/** 1 for the octets that `*` stands for and that literals are made of. */
const IN_CLASS = Uint8Array.from({ length: 256 }, (_, octet) =>
  /[a-z0-9_-]/.test(String.fromCharCode(octet)) ? 1 : 0,
)

export class NameLabels {
  /** Where each label's length octet stands in the wire, leftmost label first. */
  readonly starts = new Int32Array(LABELS_MAX)
  /** `labelHash` of each label. */
  readonly hashes = new Int32Array(LABELS_MAX)

  /** Splits the name at `offset`: the count of its labels, or -1 if an octet is outside of the class. */
  read(wire: Uint8Array, offset: number): number {
    const { starts, hashes } = this
    let count = 0
    let at = offset
    for (let length = wire[at]!; length !== 0; length = wire[at]!) {
      // Also stops at what is not a name: a compression pointer, or the end of the array.
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

/** FNV-1a from a secret start, without a final mix: LabelTrie mixes it with more before it becomes a place in a table. */
export function labelHash(octets: Uint8Array, offset: number, length: number): number {
  let hash = HASH_START
  for (let i = offset; i < offset + length; i++) hash = Math.imul(hash ^ octets[i]!, HASH_FACTOR)
  return hash
}
