// One log line when a bound is hit for the first time since the start. The line names the configuration key, because operators
// look at counters only after something is missing.

import type { Clock, Timer } from '../core/clock.ts'
import { configKeyOf, type LimitUse } from './limits.ts'
import type { Log } from './log.ts'

const LOOK_MS = 5000
/** Hit whenever a client has nothing to say, or an answer is long: no news. */
const ROUTINE: readonly string[] = ['tcp-idle-timeout', 'udp-message']
const MESSAGE =
  'a bound was hit: what is over it is refused or goes; set the limit higher if it should not'

export interface LimitHitsOptions {
  readonly limits: () => readonly LimitUse[]
  readonly clock: Clock
  readonly log: Log
}

export class LimitHits {
  readonly #of: LimitHitsOptions
  readonly #told = new Set(ROUTINE)
  #timer: Timer | undefined

  constructor(options: LimitHitsOptions) {
    this.#of = options
  }

  start(): void {
    this.#timer = this.#of.clock.every(LOOK_MS, () => this.#look())
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #look(): void {
    for (const each of this.#of.limits()) {
      if (each.hits === 0 || this.#told.has(each.limit)) continue
      this.#told.add(each.limit)
      this.#of.log.warn({ limit: configKeyOf(each), bound: each.bound, count: each.hits }, MESSAGE)
    }
  }
}
