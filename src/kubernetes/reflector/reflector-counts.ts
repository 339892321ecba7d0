// The numbers of a reflector, for metrics. The reflector is the only writer.

import type { ApiPort } from '../connection/api-port.ts'

/**
 * Why a list was begun. `fallback`: watch-list did not work. `behind`: the newest version of the server is older than the known one.
 * `retry`: the list before it failed.
 */
export type ListCause =
  | 'start'
  | 'fallback'
  | 'retry'
  | 'expired'
  | 'behind'
  | 'refused'
  | 'appeared'

export interface ReflectorCounts {
  /** Lists begun, by cause. */
  readonly lists: Record<ListCause, number>
  /** Requests by the status of their answers; `lost` if there was no whole answer. */
  readonly requests: Map<number | 'lost', number>
  events: number
  bookmarks: number
  /** Objects and events that could not be read. */
  malformed: number
  /** Events that were older than what was known, and not applied. */
  stale: number
  /** Lists that were given up because a page was missing after a compaction. */
  torn: number
  /** Lists that were not applied because they were older than what was known. */
  older: number
  /** Older lists that were applied, because the server confirmed them (a restored etcd). */
  restored: number
  /** Requests that were given up because nothing came for too long. */
  silences: number
}

/** Adds the counts of several reflectors, by key. */
export function sumOf(
  all: readonly (Readonly<Record<string, number>> | ReadonlyMap<number | string, number>)[],
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const counts of all) {
    const entries = counts instanceof Map ? [...counts] : Object.entries(counts)
    for (const [key, count] of entries) sums.set(String(key), (sums.get(String(key)) ?? 0) + count)
  }
  return sums
}

export function newCounts(): ReflectorCounts {
  return {
    lists: { start: 0, fallback: 0, retry: 0, expired: 0, behind: 0, refused: 0, appeared: 0 },
    requests: new Map(),
    events: 0,
    bookmarks: 0,
    malformed: 0,
    stale: 0,
    torn: 0,
    older: 0,
    restored: 0,
    silences: 0,
  }
}

/** Returns a function that counts in a map. */
export function countIn<Key>(counts: Map<Key, number>): (key: Key) => void {
  return (key) => void counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Returns a port that calls `count` for each request of `api`, with the status of its answer; `lost` if there was no whole answer. */
export function countRequests(api: ApiPort, count: (code: number | 'lost') => void): ApiPort {
  return {
    get: (path, done) =>
      api.get(path, (end) => {
        count(end.kind === 'answer' ? end.code : 'lost')
        done(end)
      }),
    watch: (path, handlers) =>
      api.watch(path, {
        onOpen() {
          count(200)
          handlers.onOpen()
        },
        onEvent: (event) => handlers.onEvent(event),
        onEnd(end) {
          if (end.kind !== 'ended') count(end.kind === 'answer' ? end.code : 'lost')
          handlers.onEnd(end)
        },
      }),
  }
}
