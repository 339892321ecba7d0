// Globs of one label (`api-*`, `*cdn*`, `eu-*-1`): the match, and the anchors by which an index finds the
// few globs that a label can match among many. An anchor is a literal piece of the glob that every match
// must contain: at its start, at its end, or anywhere inside.

const STAR = 0x2a

export const PREFIX = 0
export const SUFFIX = 1
export const INNER = 2
export type Side = typeof PREFIX | typeof SUFFIX | typeof INNER

/** Longest anchor, so that it fits into one int. */
export const ANCHOR_OCTETS_MAX = 4

/** A literal piece of 1..4 octets. */
export interface Anchor {
  /** 4 * side + octets - 1; 0..11. */
  readonly kind: number
  /** The octets, the first one highest. */
  readonly octets: number
}

/**
 * Whether the label matches the glob; `*` stands for zero or more octets, which the caller has checked to
 * be in the class. On a mismatch the last star takes one octet more, so the cost is at most the product of
 * both lengths and no stack is needed.
 */
export function globMatches(
  glob: Uint8Array,
  globOffset: number,
  globLength: number,
  label: Uint8Array,
  labelOffset: number,
  labelLength: number,
): boolean {
  const globEnd = globOffset + globLength
  const labelEnd = labelOffset + labelLength
  let g = globOffset
  let l = labelOffset
  let afterStar = -1
  let resume = 0
  while (l < labelEnd) {
    if (g < globEnd && glob[g] === STAR) {
      afterStar = ++g
      resume = l
    } else if (g < globEnd && glob[g] === label[l]) {
      g++
      l++
    } else if (afterStar >= 0) {
      g = afterStar
      l = ++resume
    } else {
      return false
    }
  }
  while (g < globEnd && glob[g] === STAR) g++
  return g === globEnd
}

/**
 * All anchors of a glob: of each literal piece what stands at the label's start or end, and every run of 4
 * octets inside (or the whole piece, if it is shorter and has no side). None if the glob is stars only.
 */
export function anchorsOf(glob: Uint8Array): readonly Anchor[] {
  const anchors: Anchor[] = []
  for (let start = 0; start < glob.length; start++) {
    if (glob[start] === STAR) continue
    let end = start
    while (end < glob.length && glob[end] !== STAR) end++
    const size = Math.min(end - start, ANCHOR_OCTETS_MAX)
    const atStart = start === 0
    const atEnd = end === glob.length
    if (atStart) anchors.push(mkAnchor(PREFIX, glob, start, size))
    if (atEnd) anchors.push(mkAnchor(SUFFIX, glob, end - size, size))
    for (let at = atStart ? start + 1 : start; at + size <= (atEnd ? end - 1 : end); at++) {
      anchors.push(mkAnchor(INNER, glob, at, size))
    }
    start = end
  }
  return anchors
}

function mkAnchor(side: Side, glob: Uint8Array, offset: number, length: number): Anchor {
  return { kind: side * ANCHOR_OCTETS_MAX + length - 1, octets: packOctets(glob, offset, length) }
}

/** Up to 4 octets as one int, the first one highest. */
export function packOctets(octets: Uint8Array, offset: number, length: number): number {
  let packed = 0
  for (let i = offset; i < offset + length; i++) packed = (packed << 8) | octets[i]!
  return packed
}
