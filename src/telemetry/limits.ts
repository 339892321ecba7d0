// Says how much of each bound (docs/spec/semantics 6) is used and how often the bound was hit, and logs the first hit of each bound.
// Metrics, `status` and the log all read one list of bounds (src/daemon/limit-uses.ts).

import type { Clock, Timer } from '../core/clock.ts'
import type { Log } from './log.ts'

/** One bound. `use` is undefined for bounds per client: namegate knows only their hits. */
export interface LimitUse {
  /** The bound's key in the configuration without `limits.`, e.g. `pairs`, `queries-in-flight`. */
  readonly limit: string
  readonly use: number | undefined
  readonly bound: number
  /** How often since the start something was refused, evicted or shortened at the bound. */
  readonly hits: number
}

/** `status` prints a line for a bound that is used to this part or more, and for every bound that was ever hit. */
export const NEAR_BOUND = 0.8

export function isWorthALine({ use, bound, hits }: LimitUse): boolean {
  return hits > 0 || (use !== undefined && use >= bound * NEAR_BOUND)
}

/** The key in the configuration that sets the bound. */
export function configKeyOf({ limit }: LimitUse): string {
  return limit === FLOW_FILES ? limit : `limits.${limit}`
}

/** The only bound whose key is not under `limits`. */
export const FLOW_FILES = 'flows.max-size'

const LOOK_MS = 5000
/** These bounds are hit in normal work, when a client is idle or an answer is long. Their hits are not logged. */
const ROUTINE: readonly string[] = ['tcp-idle-timeout', 'udp-message']
const MESSAGE =
  'a bound was hit: what is over it is refused or goes; set the limit higher if it should not'

/** Logs the first hit of each bound since the start, with its configuration key, because few people look at counters before a fault. */
export class LimitHits {
  readonly #limits: () => readonly LimitUse[]
  readonly #clock: Clock
  readonly #log: Log
  readonly #logged = new Set(ROUTINE)
  #timer: Timer | undefined

  constructor(limits: () => readonly LimitUse[], clock: Clock, log: Log) {
    this.#limits = limits
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    this.#timer = this.#clock.every(LOOK_MS, () => this.#look())
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #look(): void {
    for (const each of this.#limits()) {
      if (each.hits === 0 || this.#logged.has(each.limit)) continue
      this.#logged.add(each.limit)
      this.#log.warn({ limit: configKeyOf(each), bound: each.bound, count: each.hits }, MESSAGE)
    }
  }
}
