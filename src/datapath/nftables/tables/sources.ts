// Addresses that an endpoint may send from, as ranges that do not overlap.

import type { EndpointId } from '../../../core/ids.ts'
import { containsPrefix, type Family, type Prefix } from '../../../core/ip.ts'
import { pack } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'

export interface SourceRange {
  readonly key: Uint8Array
  readonly keyEnd: Uint8Array
}

/** A prefix inside another of the list is that one. */
export function sourceRanges(
  id: EndpointId,
  family: Family,
  sources: readonly Prefix[],
): readonly SourceRange[] {
  const own = sources.filter((prefix) => prefix.family === family)
  const outer = own.filter((prefix, i) => !own.some((other, j) => isInside(prefix, i, other, j)))
  const fields = shapeOf(`sources${family}`).key
  return outer.map((prefix) => ({
    key: pack(fields, [id, prefix.octets]),
    keyEnd: pack(fields, [id, lastOf(prefix)]),
  }))
}

function isInside(prefix: Prefix, i: number, other: Prefix, j: number): boolean {
  if (i === j || !containsPrefix(other, prefix)) return false
  return other.length < prefix.length || j < i
}

export function lastOf({ family, octets, length }: Prefix): Uint8Array {
  const last = octets.slice()
  const width = family === 4 ? 32 : 128
  for (let bit = length; bit < width; bit++) last[bit >> 3]! |= 0x80 >> (bit & 7)
  return last
}
