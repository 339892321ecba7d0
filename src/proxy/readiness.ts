// Whether any server has answered: each is asked once at the start, and one that keeps silent counts as down from then
// on, so that queries go to the others at once. What follows are the probes of those that are down.

import type { Clock, Timer } from '../core/clock.ts'
import type { Probes } from './upstream/probes.ts'
import type { ServerPool } from './upstream/server-pool.ts'

export interface ReadinessOptions {
  readonly clock: Clock
  readonly pool: ServerPool
  readonly probes: Pick<Probes, 'askAll'>
  /** Milliseconds that a server has for its first answer. */
  readonly timeoutMs: number
}

/** A server in the neighbourhood answers sooner; one that doesn't is asked again and comes up with its answer. */
const FIRST_ANSWER_MS = 2000

export class Readiness {
  readonly #options: ReadinessOptions
  #timer: Timer | undefined
  /** Whether the time for first answers is over. */
  #judged = false

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  get anyAnswered(): boolean {
    return this.#options.pool.answers.some((answers) => answers > 0)
  }

  /** Whether a server answered when it was asked last; undefined while it may still. */
  answered(server: number): boolean | undefined {
    const { pool } = this.#options
    if (pool.failures[server]! > 0) return false
    return pool.answers[server]! > 0 || (this.#judged ? false : undefined)
  }

  start(): void {
    const { clock, probes, timeoutMs } = this.#options
    probes.askAll()
    this.#timer = clock.after(Math.min(timeoutMs, FIRST_ANSWER_MS), () => this.#judge())
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #judge(): void {
    const { pool } = this.#options
    this.#judged = true
    for (let i = 0; i < pool.servers.length; i++) if (pool.answers[i] === 0) pool.markDown(i)
  }
}
