// The orderly end: nothing new is taken on, and every query taken on gets an answer. Sockets that outlive us are not read any
// more, so what comes waits in them for the next daemon; from our own, which die with us, everything is still read
// and refused as "not ready", so that clients go elsewhere at once. What is in flight has `limitMs`; what is left then is
// refused likewise. No client waits for an answer that will not come.

import type { Clock, Timer } from '../core/clock.ts'
import { LOCAL } from '../dns/codes.ts'
import type { Listeners } from './server/listeners.ts'
import type { ReleaseQueue } from './pipeline/release-queue.ts'
import type { Responder } from './server/responder.ts'
import type { UnknownClients } from './pipeline/unknown-clients.ts'
import type { Upstream } from './upstream/upstream.ts'

/** What has to come to an end. */
export interface Drained {
  readonly listeners: Pick<Listeners, 'reading' | 'tcp'>
  readonly upstream: Pick<Upstream, 'inFlight'>
  readonly unknown: Pick<UnknownClients, 'waiting'>
  readonly releases: Pick<ReleaseQueue, 'count'>
  readonly responder: Pick<Responder, 'answerLocally'>
}

/** How often it is looked whether all is done. */
const LOOK_MS = 5
/** Time for the first query of a TCP connection that was just accepted. */
const QUIET_MS = 200

export class Drain {
  readonly #clock: Clock
  readonly #options: Drained
  #isOwn = false
  #timer: Timer | undefined
  #end: () => void = () => undefined

  constructor(clock: Clock, drained: Drained) {
    this.#clock = clock
    this.#options = drained
  }

  /** Whether the end has begun. */
  get isUnderWay(): boolean {
    return this.#timer !== undefined
  }

  /** Whether new queries are refused. */
  get refuses(): boolean {
    return this.#isOwn
  }

  /** Resolves when all is answered; gives how many queries were given up. `outlives`: the sockets do. */
  async run(limitMs: number, outlives: boolean): Promise<number> {
    const clock = this.#clock
    const { listeners } = this.#options
    const until = clock.now() + limitMs
    this.#isOwn = !outlives
    if (outlives) listeners.reading(false)
    const ended = new Promise<void>((done) => (this.#end = done))
    this.#timer = clock.every(LOOK_MS, () => {
      if (this.#isDone || clock.now() >= until) this.cut()
    })
    await ended
    this.#timer.cancel()
    return this.#giveUp()
  }

  /** Waits no longer. */
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
