// Probes sends the query `. NS` (RFC 1035 4.1) to servers. Each server gets one at the start. After that, only a failing server
// that answers no real query soon gets probes, until any answer arrives. Other servers are judged by real queries. A probe without
// an answer counts as a failed attempt. The intervals grow and have a random part. So if several proxies lose a server at the same
// moment, their probes are spread over time. A probe uses the sockets of queries, with their random ports, ids and mark.
// Its answer is handled as a late answer. Each failing server has one timer.

import type { Clock, Timer } from '../../core/clock.ts'
import type { RandomPool } from '../../core/random.ts'
import type { ServerPool } from './server-pool.ts'

/** The interval between probes of one server doubles from INTERVAL_MIN_MS to INTERVAL_MAX_MS, which keeps recovery under 2 s. */
const INTERVAL_MIN_MS = 250
const INTERVAL_MAX_MS = 1500
/** The random part of an interval: up to this fraction longer or shorter. */
const JITTER = 0.2
const DRAWS = 65_536

export interface ProbesOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly pool: ServerPool
  /** Sends a probe. Returns true if it could be sent. */
  readonly send: (server: number) => boolean
}

export class Probes {
  /** Probes sent to each server. */
  readonly sent: Float64Array
  readonly #options: ProbesOptions
  /** The timer of each failing server, by server. */
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
  /** The time for the first answer of a server, in milliseconds; at most FIRST_ANSWER_MS is used. */
  readonly timeoutMs: number
}

/** A nearby server answers sooner than this, in milliseconds. A slower server gets probes, and is up after its first answer. */
const FIRST_ANSWER_MS = 2000

/**
 * Readiness tells if any server has answered. It asks each server once at the start. A server that does not answer in time is marked
 * down, so queries ask the other servers at once. Servers that are down get probes.
 */
export class Readiness {
  readonly #options: ReadinessOptions
  #timer: Timer | undefined
  /** True after the time for first answers is over. */
  #judged = false

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  get anyAnswered(): boolean {
    return this.#options.pool.answers.some((answers) => answers > 0)
  }

  /** Returns true if the server answered its last query, false if not, and undefined while its first answer can still arrive. */
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
