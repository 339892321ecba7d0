// The age of each kind of source: the time since every path that is configured for it could be read. Policies or endpoints are
// silent while their age is above `sources.max-age`. External resources have an age and are never silent, because they give
// labels only. Without looks (`policies.watch: false`) ages do not grow.

import type { Clock } from '../core/clock.ts'

export type SourceKind = 'policies' | 'endpoints' | 'resources'

export interface SourceAgesOptions {
  readonly clock: Clock
  /** `sources.max-age` */
  readonly maxAgeMs: number
  /** The first source fell silent, or the last one is reachable again. */
  readonly onChange: (silent: readonly SourceKind[]) => void
}

export class SourceAges {
  readonly #options: SourceAgesOptions
  readonly #reachedAt = new Map<SourceKind, number>()
  /** Milliseconds by kind, at the last look. */
  readonly #ages = new Map<SourceKind, number>()
  #silent: readonly SourceKind[] = []

  constructor(options: SourceAgesOptions) {
    this.#options = options
  }

  get silent(): readonly SourceKind[] {
    return this.#silent
  }

  /** Milliseconds since each kind was reachable, as of the last look. */
  ages(): Iterable<readonly [kind: SourceKind, milliseconds: number]> {
    return this.#ages
  }

  /** After a look at all sources; `isReachable`: every path of the kind could be read. */
  update(kinds: Iterable<readonly [kind: SourceKind, isReachable: boolean]>): void {
    const now = this.#options.clock.now()
    for (const [kind, isReachable] of kinds) {
      if (isReachable || !this.#reachedAt.has(kind)) this.#reachedAt.set(kind, now)
      this.#ages.set(kind, now - (this.#reachedAt.get(kind) ?? now))
    }
    const silent = [...this.#ages]
      .filter(([kind, age]) => kind !== 'resources' && age > this.#options.maxAgeMs)
      .map(([kind]) => kind)
    const isChanged = (silent.length === 0) !== (this.#silent.length === 0)
    this.#silent = silent
    if (isChanged) this.#options.onChange(silent)
  }
}
