// CommitWatch measures how long the datapath works on a commit, and tells when the datapath is stalled.

import type { Clock } from '../core/clock.ts'

/** The datapath is stalled if a commit takes longer than this, in milliseconds. */
const STALLED_MS = 1000

export class CommitWatch {
  readonly #clock: Clock
  #isUnderWay = false
  /** When the datapath got the commit (`Clock.now()`). */
  #since = 0
  #stalls = 0

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock
  }

  begin(): void {
    this.#isUnderWay = true
    this.#since = this.#clock.now()
  }

  end(): void {
    if (this.isStalled) this.#stalls++
    this.#isUnderWay = false
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay
  }

  /** Milliseconds; 0 when no commit is under way. */
  get underWayMs(): number {
    return this.#isUnderWay ? this.#clock.now() - this.#since : 0
  }

  get isStalled(): boolean {
    return this.underWayMs > STALLED_MS
  }

  /** How many commits stalled the datapath, the present commit included. */
  get stalls(): number {
    return this.#stalls + (this.isStalled ? 1 : 0)
  }
}
