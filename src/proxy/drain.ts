// Drain ends the proxy in an orderly way: it forwards no new query, and every forwarded query gets an answer, so no client waits
// in vain. If the sockets outlive this process, Drain stops reading them, and new queries wait there for the next daemon. If the
// sockets end with this process, new queries get the local answer "not ready", so clients ask another server at once. Queries in
// flight have `limitMs` to get their answers. After that, Drain answers the remaining queries with "not ready".

import type { Clock, Timer } from '../core/clock.ts'
import { LOCAL } from '../dns/codes.ts'
import type { Listeners } from './server/listeners.ts'
import type { ReleaseQueue } from './pipeline/release-queue.ts'
import type { Responder } from './server/responder.ts'
import type { UnknownClients } from './pipeline/unknown-clients.ts'
import type { Upstream } from './upstream/upstream.ts'

/** The parts of the proxy that Drain uses. */
export interface Drained {
  readonly listeners: Pick<Listeners, 'reading' | 'tcp'>
  readonly upstream: Pick<Upstream, 'inFlight'>
  readonly unknown: Pick<UnknownClients, 'waiting'>
  readonly releases: Pick<ReleaseQueue, 'count'>
  readonly responder: Pick<Responder, 'answerLocally'>
}

/** Interval at which Drain checks whether queries or connections are left, in milliseconds. */
const LOOK_MS = 5
/** How long a TCP connection without a query stays open, in milliseconds: its first query can still arrive. */
const QUIET_MS = 200

export class Drain {
  readonly #clock: Clock
  readonly #options: Drained
  /** True if new queries are refused. */
  refuses = false
  #timer: Timer | undefined
  #end: () => void = () => undefined

  constructor(clock: Clock, drained: Drained) {
    this.#clock = clock
    this.#options = drained
  }

  /** True after `run` was called. */
  get isUnderWay(): boolean {
    return this.#timer !== undefined
  }

  /**
   * Waits up to `limitMs` milliseconds until all queries are answered. Resolves to the number of queries that were still in flight.
   * `outlives`: true if the sockets outlive this process.
   */
  async run(limitMs: number, outlives: boolean): Promise<number> {
    const clock = this.#clock
    const { listeners } = this.#options
    const until = clock.now() + limitMs
    this.refuses = !outlives
    if (outlives) listeners.reading(false)
    const ended = new Promise<void>((done) => (this.#end = done))
    this.#timer = clock.every(LOOK_MS, () => {
      if (this.#isDone || clock.now() >= until) this.cut()
    })
    await ended
    this.#timer.cancel()
    return this.#giveUp()
  }

  /** Ends the wait of `run` at once. */
  cut(): void {
    this.#end()
  }

  get #isDone(): boolean {
    const { listeners, upstream, unknown, releases } = this.#options
    const connections = listeners.tcp.closeIdle(QUIET_MS)
    return upstream.inFlight.count + unknown.waiting + releases.count + connections === 0
  }

  #giveUp(): number {
    const { upstream, responder } = this.#options
    const { inFlight } = upstream
    const left = inFlight.count
    for (let slot = 0; slot < inFlight.capacity && left > 0; slot++) {
      if (inFlight.isTaken(slot)) responder.answerLocally(slot, LOCAL.notReady)
    }
    return left
  }
}
