// Asks servers `. NS` (RFC 1035 4.1): each once at the start, and from then on only those that fail and don't answer a
// real query soon, until any answer comes. A probe without an answer counts as an attempt. Real queries judge the others. Intervals grow and are drawn anew each time, so that proxies
// which lost the same server at the same moment don't come back to it together. A probe leaves by the same
// sockets as queries do, with their random ports, ids and mark; its answer is one of the late answers.
// One timer per server that fails.

import type { Clock, Timer } from '../../core/clock.ts'
import type { RandomPool } from '../random.ts'
import type { ServerPool } from './server-pool.ts'

/** Between probes of one server: doubled from the first to the last, which keeps recovery under 2 s. */
const INTERVAL_MIN_MS = 250
const INTERVAL_MAX_MS = 1500
/** Intervals vary by so much of themselves, up or down. */
const JITTER = 0.2
const DRAWS = 65_536

export interface ProbesOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly pool: ServerPool
  /** Sends a probe; whether it could be sent. */
  readonly send: (server: number) => boolean
}

export class Probes {
  /** Probes sent to each server. */
  readonly sent: Float64Array
  readonly #options: ProbesOptions
  /** By server, while it fails. */
  readonly #timers: (Timer | undefined)[]
  #stopped = false

  constructor(options: ProbesOptions) {
    this.#options = options
    const { pool } = options
    this.sent = new Float64Array(pool.servers.length)
    this.#timers = pool.servers.map(() => undefined)
    pool.onFailing = (server) => this.#begin(server)
  }

  /** Asks every server once. */
  askAll(): void {
    for (let server = 0; server < this.sent.length; server++) this.#ask(server)
  }

  stop(): void {
    this.#stopped = true
    for (const timer of this.#timers) timer?.cancel()
  }

  #ask(server: number): void {
    if (this.#options.send(server)) this.sent[server]!++
  }

  #begin(server: number): void {
    if (this.#timers[server] === undefined) this.#watch(server, INTERVAL_MIN_MS, false)
  }

  #watch(server: number, interval: number, asked: boolean): void {
    if (this.#stopped) return
    const { clock, random, pool } = this.#options
    const share = random.below(DRAWS) / DRAWS
    this.#timers[server] = clock.after(interval * (1 + JITTER * (2 * share - 1)), () => {
      this.#timers[server] = undefined
      if (pool.stateOf(server) === 'up') return
      this.#watch(server, Math.min(interval * 2, INTERVAL_MAX_MS), true)
      if (asked) pool.failedAttempt(server)
      this.#ask(server)
    })
  }
}

export interface ReadinessOptions {
  readonly clock: Clock
  readonly pool: ServerPool
  readonly probes: Pick<Probes, 'askAll'>
  /** Milliseconds that a server has for its first answer. */
  readonly timeoutMs: number
}

/** A server in the neighbourhood answers sooner; one that doesn't is asked again and comes up with its answer. */
const FIRST_ANSWER_MS = 2000

/**
 * Whether any server has answered. Each is asked once at the start, and one that stays silent counts as down from then
 * on, so that queries go to the others at once. Probes of the servers that are down follow.
 */
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
