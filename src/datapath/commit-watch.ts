// CommitWatch measures how long the datapath works on a commit, and tells when the datapath is stalled.

import type { Clock } from '../core/clock.ts'
import { Histogram } from '../core/tables/histogram.ts'

/** The datapath is stalled if a commit takes longer than this, in milliseconds. */
const STALLED_MS = 1000

export class CommitWatch {
  /** How long commits took, in milliseconds. */
  readonly times = new Histogram()
  readonly #clock: Clock
  #isUnderWay = false
  /** When the datapath got the commit (`Clock.now()`). */
  #since = 0
  #stalls = 0

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock
  }

  /** Notes that the datapath will get a commit. */
  start(): void {
    this.#since = this.#clock.now()
  }

  /** Call it after `start` if the datapath did not end the commit at once. */
  begin(): void {
    this.#isUnderWay = true
  }

  /** Notes the end of the commit. */
  end(): void {
    const took = this.#clock.now() - this.#since
    this.times.add(took)
    if (this.#isUnderWay && took > STALLED_MS) this.#stalls++
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
