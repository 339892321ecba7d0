// A pattern for names: Cilium's grammar (docs/spec/semantics 1), parsed once from policy text. Matching many
// patterns against a name is names/selector-index.ts; the naive meaning, one pattern against one name,
// is `matches` here, used off the packet path and as the second opinion in tests. Patterns are decided on
// labels, never on a dotted string, and no regular expression is ever built from one.

import { lower } from '../../core/name.ts'

/** A parsed pattern. Equal `text` means equal meaning. */
export interface Pattern {
  /** Canonical: lower case, no final dot, runs of stars folded (`***.a` is `**.a`, `a**b` is `a*b`, `**` alone `*`). */
  readonly text: string
  /**
   * `every`: any name at all. `exact`: one name. `below`: one or more whole labels in front of literal
   * `labels`. `globs`: label by label, where a label may hold stars; its first label may be `**`, which
   * stands for one or more whole labels (`**.ci*.io`). `*.a` is `globs`: exactly one label in front of `a`.
   */
  readonly kind: 'every' | 'exact' | 'below' | 'globs'
  /**
   * Labels of the pattern as text, leftmost first; of `below` without the leading `**`; empty for `every`.
   * A label may be longer than 63 octets, the grammar allows it: then no name can match.
   */
  readonly labels: readonly string[]
}

export type PatternResult =
  | { readonly kind: 'ok'; readonly pattern: Pattern }
  | { readonly kind: 'bad'; readonly reason: string }

/** Longest pattern in characters, blanks around it not counted (as in Cilium's CRD). */
export const PATTERN_LENGTH_MAX = 255

/** Texts parsed lately: a policy mostly names what may be asked once more among what may be reached, and both share one pattern. */
const PARSED = new Map<string, PatternResult>()
const PARSED_MAX = 1024

/** What is written as its canonical text is, with a star for one label in front or none. */
const PLAIN = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

/** A `matchName`: no stars. */
export function parseMatchName(text: string): PatternResult {
  return parsePattern(text, { allowStar: false })
}

/** A `matchPattern`: stars allowed, not required. */
export function parseMatchPattern(text: string): PatternResult {
  return parsePattern(text, { allowStar: true })
}

/** Parses policy text by docs/spec/semantics 1; the reason says what was found and what may stand there. */
export function parsePattern(
  text: string,
  options: { readonly allowStar: boolean },
): PatternResult {
  const known = PARSED.get(text)
  if (known !== undefined && (options.allowStar || !text.includes('*'))) return known
  const result = parse(text, options)
  if (result.kind === 'bad') return result
  if (PARSED.size >= PARSED_MAX) PARSED.clear()
  PARSED.set(text, result)
  return result
}

function parse(text: string, options: { readonly allowStar: boolean }): PatternResult {
  if (text.length <= PATTERN_LENGTH_MAX && PLAIN.test(text)) {
    const isStar = text.startsWith('*')
    if (options.allowStar || !isStar) return ok(isStar ? 'globs' : 'exact', text, text.split('.'))
  }
  const trimmed = text.trim()
  if (trimmed === '') return bad('found an empty text, expected a name')
  if (trimmed.length > PATTERN_LENGTH_MAX) {
    return bad(`found ${trimmed.length} characters, expected at most ${PATTERN_LENGTH_MAX}`)
  }
  const odd = /[^a-zA-Z0-9_.*-]/u.exec(trimmed)?.[0]
  if (odd !== undefined) {
    return bad(`found the character ${JSON.stringify(odd)}, expected letters, digits, - _ . or *`)
  }
  if (!options.allowStar && trimmed.includes('*')) {
    return bad('found a * in a matchName, expected a plain name (stars belong in matchPattern)')
  }
  const body = trimmed.toLowerCase().replace(/\.$/, '')
  if (/^\*+$/.test(body)) return ok('every', '*', [])
  const labels = body.split('.')
  if (labels.includes('')) {
    return bad(`found an empty label in ${JSON.stringify(trimmed)}, expected text between two dots`)
  }
  return classify(labels)
}

/** Folds runs of stars; only `**` as the whole first label in front of others keeps its two. */
function classify(labels: readonly string[]): PatternResult {
  const folded = labels.map((label) => (label.includes('**') ? label.replace(/\*+/g, '*') : label))
  const deep = labels.length > 1 && /^\*\*+$/.test(labels[0] ?? '')
  const rest = deep ? folded.slice(1) : folded
  const literal = !rest.some((label) => label.includes('*'))
  const whole = deep ? ['**', ...rest] : rest
  if (!literal) return ok('globs', whole.join('.'), whole)
  return ok(deep ? 'below' : 'exact', whole.join('.'), rest)
}

function ok(kind: Pattern['kind'], text: string, labels: readonly string[]): PatternResult {
  return { kind: 'ok', pattern: { text, kind, labels } }
}

function bad(reason: string): PatternResult {
  return { kind: 'bad', reason }
}

/**
 * Whether the uncompressed name at `offset` of `wire` matches; ASCII case doesn't count. A name with an
 * octet outside `[a-z0-9_-]` matches only `every`.
 */
export function matches(pattern: Pattern, wire: Uint8Array, offset = 0): boolean {
  if (pattern.kind === 'every') return true
  const starts = labelStarts(wire, offset)
  if (!starts.every((start) => isPlainLabel(wire, start))) return false
  const { labels } = pattern
  const deep = labels[0] === '**'
  const tail = deep ? labels.slice(1) : labels
  const extra = starts.length - tail.length
  if (pattern.kind === 'below' || deep ? extra < 1 : extra !== 0) return false
  return tail.every((label, i) => labelMatches(label, wire, starts[extra + i] ?? offset))
}

/** Offsets of the length octets of the name's labels, leftmost first. */
function labelStarts(wire: Uint8Array, offset: number): readonly number[] {
  const starts: number[] = []
  for (let at = offset; wire[at]! !== 0; at += wire[at]! + 1) starts.push(at)
  return starts
}

function isPlainLabel(wire: Uint8Array, start: number): boolean {
  for (let i = 1; i <= wire[start]!; i++) if (!isPlainOctet(lower(wire[start + i]!))) return false
  return true
}

/** The class that stars stand for, in lower case: `[a-z0-9_-]`. */
export function isPlainOctet(octet: number): boolean {
  return (
    (octet >= 0x61 && octet <= 0x7a) ||
    (octet >= 0x30 && octet <= 0x39) ||
    octet === 0x2d ||
    octet === 0x5f
  )
}

/**
 * One pattern label against one label of a name whose octets are all plain; a star takes any run of
 * them, none included. Cost: label length times pattern length at worst (one place to go back to).
 */
function labelMatches(glob: string, wire: Uint8Array, start: number): boolean {
  const length = wire[start]!
  let at = 0
  let g = 0
  let starG = -1
  let starAt = 0
  while (at < length) {
    if (glob[g] === '*') {
      starG = g++
      starAt = at
    } else if (g < glob.length && glob.charCodeAt(g) === lower(wire[start + 1 + at]!)) {
      g++
      at++
    } else if (starG >= 0) {
      g = starG + 1
      at = ++starAt
    } else {
      return false
    }
  }
  while (glob[g] === '*') g++
  return g === glob.length
}
