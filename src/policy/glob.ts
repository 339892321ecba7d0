// Globs of one label (`api-*`, `*cdn*`, `eu-*-1`): the match, and the anchors by which an index finds the
// few globs that a label can match among many. An anchor is a literal piece of the glob that every match
// must contain: at its start, at its end, or anywhere inside.

const STAR = 0x2a

export const PREFIX = 0
export const SUFFIX = 1
export const INNER = 2
export type Side = typeof PREFIX | typeof SUFFIX | typeof INNER

/** Lengths that an anchor can have. Few, because a label is looked at once for each length in use. */
export const ANCHOR_LENGTHS = Uint8Array.of(1, 2, 3, 4, 6, 8, 12, 16)

/** The literal octets `offset..offset+length` of the glob, of a length out of ANCHOR_LENGTHS. */
export interface Anchor {
  readonly side: Side
  readonly offset: number
  readonly length: number
  /** Index of `length` in ANCHOR_LENGTHS. */
  readonly step: number
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
 * All anchors of a glob, one for each of its literal pieces, and a second, inner one for what a piece has
 * beyond the first one's length; none if the glob is stars only.
 */
export function anchorsOf(glob: Uint8Array): readonly Anchor[] {
  const anchors: Anchor[] = []
  for (let start = 0; start < glob.length; start++) {
    if (glob[start] === STAR) continue
    let end = start
    while (end < glob.length && glob[end] !== STAR) end++
    const side = start === 0 ? PREFIX : end === glob.length ? SUFFIX : INNER
    const step = stepFor(end - start)
    const length = ANCHOR_LENGTHS[step]!
    const [first, last] = [start, end - length]
    anchors.push({ side, offset: side === SUFFIX ? last : first, length, step })
    if (last > first)
      anchors.push({ side: INNER, offset: side === SUFFIX ? first : last, length, step })
    start = end
  }
  return anchors
}

/** The longest anchor length that fits in `length` octets. */
function stepFor(length: number): number {
  let step = ANCHOR_LENGTHS.length - 1
  while (ANCHOR_LENGTHS[step]! > length) step--
  return step
}
