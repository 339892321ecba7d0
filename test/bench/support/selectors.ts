// Invented selectors and names, like those of a cluster of many teams: few suffixes with very many hosts below them (object stores, content
// networks, `com` itself), and many with few. Of 100 selectors, 40 are exact, 30 `*.x`, 20 `**.x`, and 10 have globs inside labels.

import { parseName } from '../../../src/core/name.ts'
import { parseMatchPattern, type Pattern } from '../../../src/policy/match/pattern.ts'
import type { Random } from '../../support/models/random.ts'

const SHARED = [
  'com', 'com', 'com', 'net', 'io', 'example.com', 'example.com', 'example.net', 's3.region-1.cloud.test',
  's3.region-1.cloud.test', 's3.region-2.cloud.test', 'blob.store.test', 'edge.cdn.test', 'svc.cluster.test',
] // prettier-ignore
const ZONES = ['com', 'com', 'net', 'io', 'org', 'test']
const CONSONANTS = 'bcdfghjklmnprstvwz'.split('')
const VOWELS = 'aeiou'.split('')
const HOSTS = ['www', 'api', 'cdn', 'login', 'static', 'img', 'mail', 'db', 'auth', 'eu-1', 'eu-2']

/** `count` different selectors, in an order in which each part has the whole mix. */
export function mkSelectors(random: Random, count: number): readonly Pattern[] {
  const selectors = new Map<string, Pattern>()
  while (selectors.size < count) {
    const pattern = mkPattern(mkSelectorText(random, selectors.size % 10))
    selectors.set(pattern.text, pattern)
  }
  return [...selectors.values()]
}

function mkSelectorText(random: Random, tenth: number): string {
  const suffix = mkSuffix(random)
  const own = `${mkWord(random, 2 + random.below(3))}.${suffix}`
  if (tenth < 4) return chance(random, 50) ? own : `${random.pick(HOSTS)}.${own}`
  if (tenth < 7) return `*.${own}`
  if (tenth < 9) return `**.${own}`
  return mkGlobText(random, suffix)
}

/** Starts, ends and insides, some of them shared by many; in the first label or the second. */
function mkGlobText(random: Random, suffix: string): string {
  const word = mkWord(random, 2 + random.below(2))
  const number = String(random.below(10_000)).padStart(4, '0')
  switch (random.below(7)) {
    case 0:
      return `${word}-*.${suffix}`
    case 1:
      return `*-${word}.${suffix}`
    case 2:
      return `*${word}*.${suffix}`
    case 3:
      return `svc-*-${number}.${suffix}`
    case 4:
      return `${random.pick(HOSTS)}-${number}*.${suffix}`
    case 5:
      return `*.${word}-*.${suffix}`
    default:
      return `${random.pick(HOSTS)}*.${word}*${mkWord(random, 1)}.${suffix}`
  }
}

function mkSuffix(random: Random): string {
  return chance(random, 60) ? random.pick(SHARED) : `${mkWord(random, 3)}.${random.pick(ZONES)}`
}

/** Names in wire form. `matching` in 100 come from one of the selectors, and the others are similar. */
export function mkNames(
  random: Random,
  options: {
    readonly selectors: readonly Pattern[]
    readonly count: number
    readonly matching: number
  },
): readonly Uint8Array[] {
  return Array.from({ length: options.count }, () => {
    const hit = chance(random, options.matching)
    return mkWire(
      hit ? mkMatchingName(random, random.pick(options.selectors)) : mkOtherName(random),
    )
  })
}

function mkMatchingName(random: Random, pattern: Pattern): string {
  const labels = pattern.text.split('.').flatMap((label) => {
    if (label === '**') return Array.from({ length: 1 + random.below(3) }, () => mkLabel(random))
    return label === '*'
      ? mkLabel(random)
      : label.replaceAll('*', () => mkWord(random, random.below(3)))
  })
  return labels.join('.')
}

function mkOtherName(random: Random): string {
  const host = chance(random, 50) ? `${mkLabel(random)}.` : ''
  return `${host}${mkWord(random, 3)}-${mkWord(random, 2)}.${mkSuffix(random)}`
}

function mkLabel(random: Random): string {
  return chance(random, 40) ? random.pick(HOSTS) : mkWord(random, 2 + random.below(3))
}

/** Syllables of two letters. */
export function mkWord(random: Random, syllables: number): string {
  let word = ''
  for (let i = 0; i < syllables; i++) word += random.pick(CONSONANTS) + random.pick(VOWELS)
  return word
}

/** True in `percent` of 100 cases. */
function chance(random: Random, percent: number): boolean {
  return random.below(100) < percent
}

function mkPattern(text: string): Pattern {
  const result = parseMatchPattern(text)
  if (result.kind === 'bad') throw new Error(`Cannot make a selector: ${result.reason}: ${text}`)
  return result.pattern
}

function mkWire(text: string): Uint8Array {
  const result = parseName(text)
  if (result.kind === 'bad') throw new Error(`Cannot make a name: ${result.reason}: ${text}`)
  return result.name
}
