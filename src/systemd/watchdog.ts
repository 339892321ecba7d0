// Feeds systemd's watchdog after each round of the daemon's queries to itself. A listener takes such a query, the pipeline handles it with
// a commit of the datapath, and the listener answers it (proxy/self-check.ts). systemd then restarts a daemon whose event loop, sockets or
// datapath hang, but it does not restart a daemon whose servers are silent.

import type { Clock, Timer } from '../core/clock.ts'

/**
 * How many rounds of queries begin within one interval of the watchdog. One round is not enough, because a full buffer can lose queries.
 */
const QUERIES_PER_INTERVAL = 8
const PAUSE_MIN_MS = 50

export interface WatchdogOptions {
  readonly clock: Clock
  /** systemd kills the process when no notification came for this time. */
  readonly intervalMs: number
  /** Begins a round of queries. `answered` is called when each listener has answered its query. */
  readonly ask: (answered: () => void) => void
  readonly feed: () => void
}

export class Watchdog {
  readonly #options: WatchdogOptions
  #timer: Timer | undefined
  readonly #ask = (): void => this.#options.ask(this.#options.feed)

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  start(): void {
    const { clock, intervalMs } = this.#options
    const pause = Math.max(intervalMs / QUERIES_PER_INTERVAL, PAUSE_MIN_MS)
    this.#ask()
    this.#timer = clock.every(pause, this.#ask)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
