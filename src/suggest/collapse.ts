// Replaces siblings (names that differ in their first label alone) by `*.PARENT`, from a given number on. A pattern allows more than
// was seen, so callers report it. No pattern where anyone may register a name, such as `*.com` or `*.co.uk`.

import { isPublicSuffix } from './public-suffix.ts'

export interface Collapsed {
  /** Names and patterns, sorted by what stands behind the first label. */
  readonly texts: readonly string[]
  /** `*.example.com` -> names that it stands for. */
  readonly patterns: ReadonlyMap<string, readonly string[]>
}

/** The same, as it is told. */
export interface NamesAndPatterns {
  readonly texts: readonly string[]
  /** `*.example.com` -> how many names it stands for. */
  readonly patterns: ReadonlyMap<string, number>
}

/** `from`: so many siblings make a pattern. */
export function collapse(names: Iterable<string>, from: number): Collapsed {
  const texts: string[] = []
  const siblings = new Map<string, string[]>()
  for (const name of names) {
    const parent = name.slice(name.indexOf('.') + 1)
    if (!name.includes('.') || isPublicSuffix(parent)) texts.push(name)
    else siblings.set(parent, [...(siblings.get(parent) ?? []), name])
  }
  const patterns = new Map<string, readonly string[]>()
  for (const [parent, those] of siblings) {
    if (those.length < from) texts.push(...those)
    else {
      patterns.set(`*.${parent}`, those)
      texts.push(`*.${parent}`)
    }
  }
  return { texts: texts.sort(byDomain), patterns }
}

/** Names of one domain stand together: compared from the last label. */
export function byDomain(a: string, b: string): number {
  const [one, other] = [a, b].map((name) => name.split('.').reverse().join(' '))
  return compare(one ?? '', other ?? '')
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
