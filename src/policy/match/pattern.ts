// This file parses patterns for names from policy text, in Cilium's grammar (docs/spec/semantics 1). `matches` compares one pattern with
// one name. It is used off the packet path, and tests compare its results with those of PatternIndex, which matches many patterns at once.
// Both compare DNS labels, and never a text with dots. Neither makes a regular expression of a pattern.

import { lower } from '../../core/name.ts'

/** A parsed pattern. Equal `text` means equal meaning. */
export interface Pattern {
  /** The canonical text: lower case, no final dot, runs of stars folded (`***.a` is `**.a`, `a**b` is `a*b`, `**` alone is `*`). */
  readonly text: string
  /**
   * `every`: matches every name. `exact`: matches one name. `below`: matches one or more DNS labels in front of the literal `labels`.
   * `globs`: is compared label by label, and a label can contain stars. The first label can be `**`, which stands for one or more whole
   * labels (`**.ci*.io`). `*.a` is of kind `globs`: it matches exactly one label in front of `a`.
   */
  readonly kind: 'every' | 'exact' | 'below' | 'globs'
  /**
   * The DNS labels of the pattern as texts, leftmost first. `below`: without the leading `**`. `every`: empty. The grammar allows labels of
   * more than 63 octets, but then no name can match.
   */
  readonly labels: readonly string[]
}

export type PatternResult =
  | { readonly kind: 'ok'; readonly pattern: Pattern }
  | { readonly kind: 'bad'; readonly reason: string }

/** The longest pattern in characters, without blanks around it (as in Cilium's CRD). */
export const PATTERN_LENGTH_MAX = 255

/** Texts that were parsed recently. A policy mostly has the same text in `rules.dns` and in `toFQDNs`, and both then share one pattern. */
const PARSED = new Map<string, PatternResult>()
const PARSED_MAX = 1024

/** Matches texts that are their own canonical text: plain labels, with or without `*.` in front. */
const PLAIN = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

/** Parses a `matchName`, which has no stars. */
export function parseMatchName(text: string): PatternResult {
  return parsePattern(text, { allowStar: false })
}

/** Parses a `matchPattern`, which can have stars. */
export function parseMatchPattern(text: string): PatternResult {
  return parsePattern(text, { allowStar: true })
}

/** A name with more around it, as in a URL: scheme, port, path. */
const HOST = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([a-z0-9_.*-]+\.[a-z0-9_-]+)(?::\d+)?(?:[/?#].*)?$/i

/** Parses policy text by docs/spec/semantics 1. A reason says what was found and what was expected. */
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
    const isAscii = odd.charCodeAt(0) < 0x80
    const expected = isAscii ? 'letters, digits, - _ . or *' : 'the ASCII form of the name (xn--…)'
    const [, name] = HOST.exec(trimmed) ?? []
    const write = name === undefined ? '' : `: write ${name}`
    return bad(`found the character ${JSON.stringify(odd)}, expected ${expected}${write}`)
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

/** Folds runs of stars into one star. Only a first label that is `**` as a whole, with other labels behind it, keeps two stars. */
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
 * Returns true if the uncompressed name at `offset` of `wire` matches. Ignores ASCII case. A name with an octet outside of `[a-z0-9_-]`
 * matches only `every`.
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

/** Returns the offsets of the length octets of a name's DNS labels, leftmost first. */
function labelStarts(wire: Uint8Array, offset: number): readonly number[] {
  const starts: number[] = []
  for (let at = offset; wire[at]! !== 0; at += wire[at]! + 1) starts.push(at)
  return starts
}

function isPlainLabel(wire: Uint8Array, start: number): boolean {
  for (let i = 1; i <= wire[start]!; i++) if (!isPlainOctet(lower(wire[start + i]!))) return false
  return true
}

/** True for a lower-case octet that a star can stand for: `[a-z0-9_-]`. */
export function isPlainOctet(octet: number): boolean {
  return (
    (octet >= 0x61 && octet <= 0x7a) ||
    (octet >= 0x30 && octet <= 0x39) ||
    octet === 0x2d ||
    octet === 0x5f
  )
}

/**
 * Compares one label of a pattern with one DNS label of a name, whose octets are all plain. A star takes zero or more octets. The cost is
 * at most label length times pattern length, because after a mismatch only the last star is tried again.
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
