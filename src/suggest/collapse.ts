// `collapse` replaces siblings by one pattern `*.PARENT`, if there are enough of them. Siblings are names that differ only in their first
// DNS label. A pattern allows more names than were seen, so callers report it. Siblings directly below a public suffix, such as `com`,
// `co.uk` and `github.io`, are never replaced, because anyone can register a name there.

import { getPublicSuffix } from 'tldts'

/** Names, with siblings replaced by patterns. */
export interface Collapsed {
  /** Names and patterns, sorted by their DNS labels from the last to the first. */
  readonly texts: readonly string[]
  /** Pattern (`*.example.com`) -> the names that it replaces. */
  readonly patterns: ReadonlyMap<string, readonly string[]>
}

/** A Collapsed for output, with the number of names in place of the names. */
export interface NamesAndPatterns {
  readonly texts: readonly string[]
  /** Pattern (`*.example.com`) -> how many names it replaces. */
  readonly patterns: ReadonlyMap<string, number>
}

/** Replaces siblings by patterns. `from` is the least number of siblings that become a pattern. */
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

/** Looks in the public suffix list of `tldts`. `domain` is lower case without final dot. A name without a dot is always a suffix. */
function isPublicSuffix(domain: string): boolean {
  if (!domain.includes('.')) return true
  return getPublicSuffix(domain, { allowPrivateDomains: true, extractHostname: false }) === domain
}

/** Compares DNS labels from the last to the first, so that names of one domain are neighbours. */
export function byDomain(a: string, b: string): number {
  const [one, other] = [a, b].map((name) => name.split('.').reverse().join(' '))
  return compare(one ?? '', other ?? '')
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
