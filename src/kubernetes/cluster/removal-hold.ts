// RemovalHold delays the removal of policies. A cluster can lose many policies by accident: a CRD is deleted, or a server starts with an
// old copy of its data. Then no endpoint may open before a person has seen it.
//
// | state   | a removal                                       | after the window | accept  | after `holdMs` |
// |---------|-------------------------------------------------|------------------|---------|----------------|
// | calm    | waits for the window; many removals start a hold | takes effect     | nothing | -              |
// | holding | waits for the end of the hold                   | -                | all take effect, calm | all take effect, calm |
//
// Removals are many when more than `share` of all policies of the kind wait, and at least two. The window is longer than any of them, so
// all removals that count together are still waiting when the hold starts. A policy that comes back does not wait any more.
//
// A restart of namegate begins a hold again, with its whole time: the removals that were held wait for the end of the new hold.

import type { Clock, Timer } from '../../core/clock.ts'

/** How long a removal waits, in milliseconds, to be counted together with later ones. */
export const REMOVAL_WINDOW_MS = 10_000
/** A single removal is the work of a person. */
const MANY_AT_LEAST = 2

export interface RemovalHoldOptions {
  readonly clock: Clock
  /** The part of all policies that can be removed within the window without a hold, 0 to 1. */
  readonly share: number
  /** How long a hold lasts, in milliseconds. */
  readonly holdMs: number
  /** How many policies are in force, including those that wait for their removal. */
  readonly count: () => number
  /** Makes the removal of these policies effective. */
  readonly remove: (names: readonly string[]) => void
  /** Keeps over restarts whether a removal is held. */
  readonly keepHeld: (name: string, isHeld: boolean) => void
  /** Called when a hold starts, and when it ends. */
  readonly onHold: (isHolding: boolean) => void
}

export class RemovalHold {
  readonly #options: RemovalHoldOptions
  /** The time of each removal that waits, by name, in the order of the removals. */
  readonly #waiting = new Map<string, number>()
  #timer: Timer | undefined
  /** The end of the hold. Undefined: no hold. */
  #until: number | undefined

  constructor(options: RemovalHoldOptions) {
    this.#options = options
  }

  /** How many policies are in force only because of the hold. */
  get held(): number {
    return this.#until === undefined ? 0 : this.#waiting.size
  }

  /** Milliseconds until the hold ends. Undefined: no hold. */
  get remainingMs(): number | undefined {
    return this.#until && Math.max(0, this.#until - this.#options.clock.now())
  }

  has(name: string): boolean {
    return this.#waiting.has(name)
  }

  names(): Iterable<string> {
    return this.#waiting.keys()
  }

  /** Notes that a policy was removed from the cluster. */
  add(name: string): void {
    const { clock, count, share, keepHeld } = this.#options
    if (this.#waiting.has(name)) return
    if (this.#until !== undefined) keepHeld(name, true)
    this.#waiting.set(name, clock.now())
    const { size } = this.#waiting
    if (this.#until === undefined && size >= MANY_AT_LEAST && size > share * count()) this.hold()
    else if (this.#until === undefined) this.#schedule()
  }

  /** Notes that the cluster has the policy again. */
  back(name: string): void {
    if (this.#waiting.delete(name)) this.#options.keepHeld(name, false)
  }

  /**
   * Starts a hold for all removals that wait, because the whole kind has gone or the daemon before held them. Does nothing when
   * no removal waits.
   */
  hold(): void {
    const { clock, holdMs, keepHeld, onHold } = this.#options
    if (this.#until !== undefined || this.#waiting.size === 0) return
    for (const name of this.#waiting.keys()) keepHeld(name, true)
    this.#until = clock.now() + holdMs
    this.#timer?.cancel()
    this.#timer = clock.after(holdMs, () => this.accept())
    onHold(true)
  }

  /** Ends a hold: all removals take effect. Returns how many. */
  accept(): number {
    if (this.#until === undefined) return 0
    this.#until = undefined
    this.#timer?.cancel()
    this.#timer = undefined
    const names = [...this.#waiting.keys()]
    this.#waiting.clear()
    for (const name of names) this.#options.keepHeld(name, false)
    this.#options.remove(names)
    this.#options.onHold(false)
    return names.length
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #schedule(): void {
    const [first] = this.#waiting.values()
    if (this.#timer !== undefined || first === undefined) return
    const { clock } = this.#options
    this.#timer = clock.after(Math.max(0, first + REMOVAL_WINDOW_MS - clock.now()), () => {
      this.#timer = undefined
      this.#removeOld()
      this.#schedule()
    })
  }

  #removeOld(): void {
    const before = this.#options.clock.now() - REMOVAL_WINDOW_MS
    const old = [...this.#waiting].filter(([, at]) => at <= before).map(([name]) => name)
    for (const name of old) this.#waiting.delete(name)
    if (old.length > 0) this.#options.remove(old)
  }
}
