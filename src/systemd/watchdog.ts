// Feeds systemd's watchdog only after an answer to a query of our own that went the whole way: in by a listener, through the pipeline
// and a commit of the datapath, out again (proxy/self-query.ts). A daemon whose event loop, sockets or datapath hang is restarted;
// one whose servers are silent is not.

import type { Clock, Timer } from '../core/clock.ts'

/** Queries within one interval of the watchdog: some may be lost in a full buffer. */
const QUERIES_PER_INTERVAL = 8
const PAUSE_MIN_MS = 50

export interface WatchdogOptions {
  readonly clock: Clock
  /** Milliseconds after which a watchdog that hears nothing acts. */
  readonly intervalMs: number
  /** Begins a round of queries; `answered` is called when each listener has answered its own. */
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
