// Measures how long changes of the cluster's objects take until the datapath enforces them. Changes that come into force together count
// once for each kind of object, from the oldest of them. So a change that has to wait never hides behind later ones.

import type { Clock } from '../../core/clock.ts'
import { Histogram } from '../../core/tables/histogram.ts'
import type { ReceivedObjects } from '../../sources/files/given-items.ts'

/** Upper bounds in milliseconds. Changes wait 10 ms for others that come at the same moment. */
const BOUNDS_MS = [15, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

export class EnforcementTimes {
  readonly pod = new Histogram(BOUNDS_MS)
  readonly policy = new Histogram(BOUNDS_MS)
  readonly #clock: Clock
  /** When the oldest change that is not in force was received, in milliseconds of `Clock.now()`. Undefined: all are in force. */
  #podSince: number | undefined
  #policySince: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes changes that were received at `since`. Call it before they are put in force. */
  begin({ policies, endpoints, peers }: ReceivedObjects, since: number): void {
    if (endpoints.size + peers.size > 0) this.#podSince ??= since
    if (policies.size > 0) this.#policySince ??= since
  }

  /** Notes that every change is in force. */
  inForce(): void {
    const now = this.#clock.now()
    if (this.#podSince !== undefined) this.pod.add(now - this.#podSince)
    if (this.#policySince !== undefined) this.policy.add(now - this.#policySince)
    this.forget()
  }

  /** Notes that the changes changed nothing that is in force. */
  forget(): void {
    this.#podSince = undefined
    this.#policySince = undefined
  }
}
