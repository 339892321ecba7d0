// Makes the paths of the requests of a reflector. The comments say what each parameter asks of the server.

import type { RandomPool } from '../../core/random.ts'
import { randomPart } from './backoff.ts'
import type { Target } from './collections.ts'
import type { KnownVersion } from './known-version.ts'

/** How many objects one answer of a paged list has. */
export const PAGE_SIZE = 500
/**
 * The size of the pages after a list was given up. 0 stands for one page with everything: no compaction can come between its pages. A page
 * above the bound is followed by smaller ones.
 */
export function pageSizeAfter(end: 'torn' | 'too-long' | 'lost', size: number): number {
  if (end === 'torn') return 0
  return end === 'lost' ? size : Math.max(1, (size === 0 ? PAGE_SIZE : size) >> 2)
}

/** A watch ends by itself after this time, and up to as much again at random, so that a server that returns gets its clients back. */
export const WATCH_MS = 300_000

/** What a list may answer. `latest`: the newest state. `any`: what the server's cache has. Otherwise: not older than this version. */
export type Freshness =
  | { readonly kind: 'latest' }
  | { readonly kind: 'any' }
  | { readonly kind: 'not-older'; readonly version: string }

/**
 * A list whose objects come as events of a watch. Without a version the server answers with the newest state. The initial state ends with
 * an annotated bookmark, and the same stream continues as a watch.
 */
export function watchListPath(target: Target, random: RandomPool): string {
  return pathOf(target, [
    ...watchParameters(random),
    ['sendInitialEvents', 'true'],
    ['resourceVersionMatch', 'NotOlderThan'],
  ])
}

/** A watch that begins after `version`. */
export function watchPath(target: Target, version: string, random: RandomPool): string {
  return pathOf(target, [...watchParameters(random), ['resourceVersion', version]])
}

/** What the next list of a target may answer. */
export function freshnessOf(
  { collection }: Target,
  { version, needsLatest }: Pick<KnownVersion, 'version' | 'needsLatest'>,
): Freshness {
  // The newest state of one node's pods costs a server without watch-list a read of all pods of the cluster, and a node's pods are few.
  if (collection.nodes !== 'this' || needsLatest) return { kind: 'latest' }
  return version === undefined ? { kind: 'any' } : { kind: 'not-older', version }
}

/** A page of a list. `next` is the token of the page before. With `limit` 0, or from the cache, there is only one page. */
export function listPath(
  target: Target,
  freshness: Freshness,
  limit: number,
  next: string | undefined,
): string {
  const token: readonly Parameter[] = next === undefined ? [] : [['continue', next]]
  switch (freshness.kind) {
    case 'latest':
      return pathOf(target, [...(limit > 0 ? [['limit', String(limit)] as const] : []), ...token])
    case 'any':
      return pathOf(target, [['resourceVersion', '0'], ...token])
    case 'not-older':
      return pathOf(target, [
        ['resourceVersion', freshness.version],
        ['resourceVersionMatch', 'NotOlderThan'],
        ...token,
      ])
  }
}

type Parameter = readonly [key: string, value: string]

function watchParameters(random: RandomPool): readonly Parameter[] {
  const seconds = Math.round((WATCH_MS + randomPart(random, WATCH_MS)) / 1000)
  return [
    ['watch', 'true'],
    ['allowWatchBookmarks', 'true'],
    ['timeoutSeconds', String(seconds)],
  ]
}

function pathOf({ path, selector }: Target, parameters: readonly Parameter[]): string {
  const query = [...selector, ...parameters]
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join('&')
  return query === '' ? path : `${path}?${query}`
}
