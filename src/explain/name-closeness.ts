// `compareName` says how near a pattern is to a name, and in words what separates them. For hints to people; it decides nothing.

import { nearest } from '../core/did-you-mean.ts'
import { formatName } from '../core/name.ts'
import { matches, type Pattern } from '../policy/match/pattern.ts'

/** The comparison of one part of a rule. */
export interface Part {
  /** From 0 (unrelated) to 1 (it matches). */
  readonly near: number
  /** Words about the difference; empty if the part matches. */
  readonly lacks: string
}

/** A name and its DNS labels, the last label first. */
export interface Words {
  readonly wire: Uint8Array
  readonly text: string
  readonly labels: readonly string[]
}

/** Splits a name in wire format into its DNS labels. */
export function wordsOf(wire: Uint8Array): Words {
  const text = formatName(wire)
  return { wire, text, labels: text.split('.').reverse() }
}

/** Above a misspelt name, and below a rule for the same name with other ports. */
const NEAR_BELOW = 0.92

/** Compares a pattern with a name. `subject` begins the words about a difference; default: the pattern. */
export function compareName(pattern: Pattern, name: Words, subject = pattern.text): Part {
  if (matches(pattern, name.wire)) return { near: 1, lacks: '' }
  if (isJustBelow(pattern, name)) {
    const lacks = `${subject} matches names below ${name.text}, not ${name.text} itself`
    return { near: NEAR_BELOW, lacks }
  }
  const rest = subject === pattern.text ? ` ${name.text}` : ''
  return { near: patternCloseness(pattern, name), lacks: `${subject} does not match${rest}` }
}

/** True for `*.a` and `**.a` if the name is `a`. */
function isJustBelow({ text }: Pattern, name: Words): boolean {
  return text === `*.${name.text}` || text === `**.${name.text}`
}

/** Compares a pattern with a name, from 0 to 1. Names under the same parent are near, and so are names with one misspelt DNS label. */
function patternCloseness({ text, labels }: Pattern, name: Words): number {
  const [count, others] = [labels.length, name.labels]
  let same = 0
  while (same < count && same < others.length && labels[count - 1 - same] === others[same]) same++
  if (count === others.length && differing(labels, others) === 1) {
    if (nearest(name.text, [text]) !== undefined) return 0.9
  }
  if (same < 2) return 0
  const star = labels[count - 1 - same]?.includes('*') === true ? 0.5 : 0
  return 0.5 + (0.4 * (same + star)) / Math.max(count, others.length)
}

/** Counts the DNS labels that differ between two names with the same number of labels. */
function differing(labels: readonly string[], reversed: readonly string[]): number {
  let count = 0
  for (const [i, label] of labels.entries()) if (label !== reversed[labels.length - 1 - i]) count++
  return count
}
