// The configured servers: which of them are up, which one is asked first, and whom a query asks next. Judged by what
// real queries meet (docs/decisions/0008): a server is down after DOWN_AFTER attempts in a row that ended without an
// answer and up again with any answer, whatever its RCODE. The first server stays first ("sticky") until it is down, is
// overtaken by another time and again, or answers nothing but SERVFAIL while another does better. When all are down
// they are asked in turn, so a query is never dropped unasked. Typed arrays by server; O(servers) a choice.

import type { Family } from '../../core/ip.ts'

export interface ServerAddress {
  readonly family: Family
  /** Numeric, without brackets. */
  readonly address: string
  /** 1..65535. */
  readonly port: number
}

/** `9.9.9.9:53`, `[2620:fe::fe]:53` */
export function formatServer({ family, address, port }: ServerAddress): string {
  return family === 4 ? `${address}:${port}` : `[${address}]:${port}`
}

export type ServerState = 'up' | 'failing' | 'down'

/** Attempts in a row without an answer. */
export const DOWN_AFTER = 3
/** Queries in a row that another server answered sooner though it was asked later. */
export const OVERTAKEN_MAX = 8
/** Answers in a row that are SERVFAIL; one broken zone asked by a hasty client is fewer than that. */
export const SERVFAILS_MAX = 16

export class ServerPool {
  readonly servers: readonly ServerAddress[]
  readonly rtt: ServerRtt
  /** Attempts of each server since its last answer that ended without one. */
  readonly failures: Uint32Array
  /** Answers and failed attempts of each server so far. */
  readonly answers: Float64Array
  readonly failed: Float64Array
  /** When each answered last, in the clock's milliseconds; written by the attempts. */
  readonly answeredAt: Float64Array
  readonly counters = {
    /** Times that another server became the first. */
    failovers: 0,
    /** Times that a server went down, or came up again. */
    downs: 0,
    ups: 0,
  }
  /** Called when a server begins to fail. */
  onFailing: (server: number) => void = () => undefined
  readonly #down: Uint8Array
  readonly #servfails: Uint16Array
  #first = 0
  #overtaken = 0
  #turn = 0

  constructor(servers: readonly ServerAddress[]) {
    this.servers = servers
    this.rtt = new ServerRtt(servers.length)
    this.failures = new Uint32Array(servers.length)
    this.answers = new Float64Array(servers.length)
    this.failed = new Float64Array(servers.length)
    this.answeredAt = new Float64Array(servers.length).fill(-Infinity)
    this.#down = new Uint8Array(servers.length)
    this.#servfails = new Uint16Array(servers.length)
  }

  /** The server that a new query asks first while it is up. */
  get first(): number {
    return this.#first
  }

  isDown(server: number): boolean {
    return this.#down[server] === 1
  }

  stateOf(server: number): ServerState {
    if (this.isDown(server)) return 'down'
    return this.failures[server] === 0 ? 'up' : 'failing'
  }

  /** Whom a new query asks: the first; when all are down each in turn. */
  begin(): number {
    if (!this.isDown(this.#first)) return this.#first
    this.#turn = (this.#turn + 1) % this.servers.length
    return this.#turn
  }

  /** A server that is up and not among `asked` (bit `server & 31`); -1 when there's none. */
  fresh(asked: number): number {
    return this.#find(asked, false)
  }

  /** Whom to ask after `last`: one not asked yet, sooner one that is up; then round those that are up; then all. */
  next(asked: number, last: number): number {
    const fresh = this.fresh(asked)
    if (fresh >= 0) return fresh
    const down = this.#find(asked, true)
    if (down >= 0) return down
    const count = this.servers.length
    for (let i = 1; i <= count; i++) {
      const server = (last + i) % count
      if (!this.isDown(server)) return server
    }
    return (last + 1) % count
  }

  /** A server answered, after `ms` when that is known; `servfail` when that is all it said. */
  answered(server: number, servfail: boolean, ms?: number): void {
    if (ms !== undefined) this.rtt.add(server, ms)
    this.answers[server]!++
    this.failures[server] = 0
    if (this.isDown(server)) {
      this.#down[server] = 0
      this.counters.ups++
    }
    if (servfail) this.#servfails[server] = Math.min(this.#servfails[server]! + 1, SERVFAILS_MAX)
    else this.#servfails[server] = 0
    if (this.isDown(this.#first) || this.#isUseless(this.#first)) this.#elect()
  }

  /** An attempt ended without an answer: overdue, or the kernel reported an error. */
  failedAttempt(server: number): void {
    this.failed[server]!++
    const failures = ++this.failures[server]!
    if (failures === 1) this.onFailing(server)
    if (failures >= DOWN_AFTER) this.markDown(server)
  }

  markDown(server: number): void {
    if (this.isDown(server)) return
    this.#down[server] = 1
    this.counters.downs++
    if (server === this.#first) this.#elect()
    if (this.failures[server] !== 0) return
    this.failures[server] = 1
    this.onFailing(server)
  }

  /** A query that asked the first server first was answered by `winner`. */
  won(winner: number): void {
    if (winner === this.#first) {
      this.#overtaken = 0
    } else if (++this.#overtaken >= OVERTAKEN_MAX && !this.isDown(winner)) {
      this.#lead(winner)
    }
  }

  /** The best server leads: up and of use, else up; in the order of the configuration. None: the first stays. */
  #elect(): void {
    const count = this.servers.length
    let found = -1
    for (let i = 0; i < count; i++) {
      if (this.isDown(i)) continue
      if (!this.#isUseless(i)) {
        found = i
        break
      }
      if (found < 0) found = i
    }
    const firstServes = !this.isDown(this.#first)
    if (found < 0 || (firstServes && this.#isUseless(found))) return
    if (found !== this.#first) this.#lead(found)
  }

  #lead(server: number): void {
    this.#first = server
    this.#overtaken = 0
    this.counters.failovers++
  }

  #isUseless(server: number): boolean {
    return this.#servfails[server] === SERVFAILS_MAX
  }

  /** From the first server on round, one that isn't among `asked`. */
  #find(asked: number, down: boolean): number {
    const count = this.servers.length
    for (let i = 0; i < count; i++) {
      const server = (this.#first + i) % count
      const wasAsked = (asked & (1 << (server & 31))) !== 0
      if (!wasAsked && this.isDown(server) === down) return server
    }
    return -1
  }
}

const MEAN_WEIGHT = 1 / 8
const DEVIATION_WEIGHT = 1 / 4
const DEVIATIONS = 4

/**
 * How long a server takes to answer: smoothed mean and deviation (RFC 6298 section 2, with its constants), and from
 * them how long to wait before another server is asked as well. Every attempt has an id of its own, so a late answer
 * gives its true time and no sample is ambiguous. O(1) a sample.
 */
export class ServerRtt {
  /** Milliseconds; negative before the first answer. */
  readonly means: Float64Array
  readonly #deviations: Float64Array

  constructor(servers: number) {
    this.means = new Float64Array(servers).fill(-1)
    this.#deviations = new Float64Array(servers)
  }

  add(server: number, ms: number): void {
    const mean = this.means[server]!
    if (mean < 0) {
      this.means[server] = ms
      this.#deviations[server] = ms / 2
      return
    }
    const error = ms - mean
    this.means[server] = mean + MEAN_WEIGHT * error
    this.#deviations[server]! += DEVIATION_WEIGHT * (Math.abs(error) - this.#deviations[server]!)
  }

  /** Milliseconds after which an answer is overdue; undefined before the first answer. */
  timeout(server: number): number | undefined {
    const mean = this.means[server]!
    return mean < 0 ? undefined : mean + DEVIATIONS * this.#deviations[server]!
  }
}
