// KnownVersion is the version of what the owner of a collection knows. It never goes back, with one exception: when the server gives an
// older version as its newest state several times, its etcd was restored from a backup, and the older state is the truth.

import type { ReflectorCounts } from './reflector-counts.ts'
import { isOlder } from './resource-version.ts'

/** After so many successive lists of the newest state that are older, the state counts as restored. */
export const OLDER_MAX = 3

export class KnownVersion {
  readonly #counts: ReflectorCounts
  #version: string | undefined
  #olderTimes = 0
  #needsLatest = false

  constructor(counts: ReflectorCounts) {
    this.#counts = counts
  }

  /** Undefined before the first list. */
  get version(): string | undefined {
    return this.#version
  }

  /** True if the next list must be of the newest state, because the known version can be from the server's future. */
  get needsLatest(): boolean {
    return this.#needsLatest
  }

  /** Asks for the newest state in the next list. */
  doubt(): void {
    this.#needsLatest = true
  }

  /** Takes the version of a complete list. Returns false if the list must not be applied. */
  take(version: string, isLatest: boolean): boolean {
    if (this.isAhead(version)) {
      this.#needsLatest = true
      if (isLatest) this.#olderTimes++
      if (this.#olderTimes < OLDER_MAX) {
        this.#counts.older++
        return false
      }
      this.#counts.restored++
    }
    this.#version = version
    this.#olderTimes = 0
    this.#needsLatest = false
    return true
  }

  /** True if `version` is older than what is known. */
  isAhead(version: string): boolean {
    return this.#version !== undefined && isOlder(version, this.#version)
  }

  /** Takes the version of an event or bookmark. */
  advance(version: string): void {
    if (!this.isAhead(version)) this.#version = version
  }
}
