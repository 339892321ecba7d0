// How long ago each kind of source was heard: the last look at which every path that is configured for it could be looked
// at. Policies or endpoints that were not heard for `sources.max-age` are silent, until the next such look. External
// resources have an age and are never silent: they give labels only. Where nobody looks (`policies.watch: false`)
// nothing grows old.

import type { Clock } from '../core/clock.ts'

export type SourceKind = 'policies' | 'endpoints' | 'resources'

export interface SourceAgesOptions {
  readonly clock: Clock
  /** `sources.max-age` */
  readonly maxAgeMs: number
  /** Some source fell silent, or none is silent any more. */
  readonly onChange: (silent: readonly SourceKind[]) => void
}

export class SourceAges {
  readonly #to: SourceAgesOptions
  readonly #heardAt = new Map<SourceKind, number>()
  /** Milliseconds by kind, at the last look. */
  readonly #ages = new Map<SourceKind, number>()
  #silent: readonly SourceKind[] = []

  constructor(options: SourceAgesOptions) {
    this.#to = options
  }

  get silent(): readonly SourceKind[] {
    return this.#silent
  }

  /** Milliseconds since it was heard, as of the last look. */
  ages(): Iterable<readonly [kind: SourceKind, milliseconds: number]> {
    return this.#ages
  }

  /** There was a look at all of them; `isHeard`: every path of the kind could be looked at. */
  looked(kinds: Iterable<readonly [kind: SourceKind, isHeard: boolean]>): void {
    const now = this.#to.clock.now()
    for (const [kind, isHeard] of kinds) {
      if (isHeard || !this.#heardAt.has(kind)) this.#heardAt.set(kind, now)
      this.#ages.set(kind, now - (this.#heardAt.get(kind) ?? now))
    }
    const silent = [...this.#ages]
      .filter(([kind, age]) => kind !== 'resources' && age > this.#to.maxAgeMs)
      .map(([kind]) => kind)
    const isChanged = (silent.length === 0) !== (this.#silent.length === 0)
    this.#silent = silent
    if (isChanged) this.#to.onChange(silent)
  }
}
