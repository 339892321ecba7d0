// Measures the age of each kind of source: the time since every path that is configured for the kind could be read, or every
// collection of the cluster. Policies, endpoints or collections are silent while their age is above `sources.max-age`. External
// resources have an age but are never silent, because they only give labels. With `policies.watch: false` namegate does not look
// at the paths, so ages do not grow.

import type { Clock } from '../core/clock.ts'

export type SourceKind = 'policies' | 'endpoints' | 'resources' | 'collections'

/** Called with the silent kinds when the first kind becomes silent, and with an empty list when all kinds are reachable again. */
export type OnSilence = (silent: readonly SourceKind[]) => void

export class SourceAges {
  readonly #clock: Clock
  readonly #maxAgeMs: number
  readonly #onSilence: OnSilence
  readonly #reachedAt = new Map<SourceKind, number>()
  /** The age of each kind at the last look, in milliseconds. */
  readonly #ages = new Map<SourceKind, number>()
  #silent: readonly SourceKind[] = []

  /** `maxAgeMs` is `sources.max-age`. */
  constructor(clock: Clock, maxAgeMs: number, onSilence: OnSilence) {
    this.#clock = clock
    this.#maxAgeMs = maxAgeMs
    this.#onSilence = onSilence
  }

  get silent(): readonly SourceKind[] {
    return this.#silent
  }

  /** The age of each kind at the last look, in milliseconds. */
  ages(): Iterable<readonly [kind: SourceKind, milliseconds: number]> {
    return this.#ages
  }

  /** Notes the result of a look at all sources. `isReachable`: every path of the kind could be read. */
  update(kinds: Iterable<readonly [kind: SourceKind, isReachable: boolean]>): void {
    const now = this.#clock.now()
    for (const [kind, isReachable] of kinds) {
      if (isReachable || !this.#reachedAt.has(kind)) this.#reachedAt.set(kind, now)
      this.#ages.set(kind, now - (this.#reachedAt.get(kind) ?? now))
    }
    const silent = [...this.#ages]
      .filter(([kind, age]) => kind !== 'resources' && age > this.#maxAgeMs)
      .map(([kind]) => kind)
    const isChanged = (silent.length === 0) !== (this.#silent.length === 0)
    this.#silent = silent
    if (isChanged) this.#onSilence(silent)
  }
}
