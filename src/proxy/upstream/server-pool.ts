// ServerPool knows which configured servers are up, and chooses the server that a query asks first and next. Real queries judge the
// servers (docs/decisions/0008). A server is down after DOWN_AFTER attempts in a row without an answer. Any answer brings it up
// again, whatever its RCODE. Another server becomes the first when the first server is down, when other servers are faster
// OVERTAKEN_MAX times in a row, or when the first server answers only SERVFAIL and another server does not. If all servers are down,
// queries ask them one after the other, so every query is sent. The state is in typed arrays by server. A choice is O(servers).

import type { Family } from '../../core/ip.ts'
import { Histogram } from '../../core/tables/histogram.ts'

export interface ServerAddress {
  readonly family: Family
  /** The address as numeric text without brackets. */
  readonly address: string
  /** 1..65535. */
  readonly port: number
}

/** Returns the address and port as text, such as `9.9.9.9:53` or `[2620:fe::fe]:53`. */
export function formatServer({ family, address, port }: ServerAddress): string {
  return family === 4 ? `${address}:${port}` : `[${address}]:${port}`
}

export type ServerState = 'up' | 'failing' | 'down'

/** After this number of attempts in a row without an answer, a server is down. */
export const DOWN_AFTER = 3
/** After this number of queries in a row that other servers answered sooner than the first, the last of these becomes the first. */
export const OVERTAKEN_MAX = 8
/** After this number of SERVFAIL answers in a row, a server is useless. A client that repeats a query for one broken zone causes fewer. */
export const SERVFAILS_MAX = 16

export class ServerPool {
  readonly servers: readonly ServerAddress[]
  readonly rtt: ServerRtt
  /** For each server, the number of failed attempts since its last answer. */
  readonly failures: Uint32Array
  /** For each server, the number of answers since the start. */
  readonly answers: Float64Array
  /** For each server, the number of failed attempts since the start. */
  readonly failed: Float64Array
  /** When each server answered last, in the clock's milliseconds. Attempts writes it. */
  readonly answeredAt: Float64Array
  /**
   * The time from each message to its answer, in milliseconds, by server, with late answers and over UDP and TCP. The last histogram
   * is for all servers that clients chose.
   */
  readonly roundTrips: readonly Histogram[]
  readonly counters = {
    /** How often another server became the first. */
    failovers: 0,
    /** How often a server was marked down. */
    downs: 0,
    /** How often a server that was down came up again. */
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
    this.roundTrips = [...servers, undefined].map(() => new Histogram())
    this.#down = new Uint8Array(servers.length)
    this.#servfails = new Uint16Array(servers.length)
  }

  /** The server that a new query asks first, as long as the server is up. */
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

  /** Returns the server that a new query asks: the first server. If it is down, each call returns the next server. */
  begin(): number {
    if (!this.isDown(this.#first)) return this.#first
    this.#turn = (this.#turn + 1) % this.servers.length
    return this.#turn
  }

  /** Returns a server that is up and not in `asked` (bit `server & 31`); -1 if there is none. */
  fresh(asked: number): number {
    return this.#find(asked, false)
  }

  /** Returns the server to ask after `last`: a server that is up and was not asked, else one not asked, else one that is up, else any. */
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

  /** Counts an answer of a server. `servfail`: the answer was SERVFAIL. `ms`: its time in milliseconds; undefined if not known. */
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

  /** Counts the time that a server took to answer, in milliseconds. `server` can be one that a client chose. */
  addRoundTrip(server: number, ms: number): void {
    this.roundTrips[Math.min(server, this.servers.length)]!.add(ms)
  }

  /** Counts an attempt that ended without an answer: the answer was overdue, or the kernel reported an error. */
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

  /** Notes that `winner` answered a query that had asked the first server first. */
  won(winner: number): void {
    if (winner === this.#first) {
      this.#overtaken = 0
    } else if (++this.#overtaken >= OVERTAKEN_MAX && !this.isDown(winner)) {
      this.#lead(winner)
    }
  }

  /** Chooses a new first server in the configured order: one that is up and useful, else one that is up. If none is, the first stays. */
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

  /** Returns a server that is not in `asked` and is down or up as `down` says, starting at the first server; -1 if there is none. */
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
 * ServerRtt measures how long each server takes to answer: smoothed mean and deviation, with the constants of RFC 6298 section 2.
 * From both it computes when an answer is overdue. Every attempt has its own id, so the time of a late answer is exact too.
 * A sample costs O(1).
 */
export class ServerRtt {
  /** The mean of each server in milliseconds; negative before the first answer. */
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

  /** Returns the milliseconds after which an answer is overdue; undefined before the first answer. */
  timeout(server: number): number | undefined {
    const mean = this.means[server]!
    return mean < 0 ? undefined : mean + DEVIATIONS * this.#deviations[server]!
  }
}
