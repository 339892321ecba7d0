// The attempts of queries in flight: which server, which socket, which id, and when the next one is due. A query
// gets `attempts` tries round the servers within one deadline; an earlier attempt goes on waiting while the
// next is made, so a slow server can still answer. An error that the kernel reports brings the next attempt at once,
// silence when the answer is overdue and the budget has a retry (retry-policy.ts). At most `attempts` packets
// leave per query, and one repetition over TCP, made again once when its connection ends [A13].
// State per slot is in typed arrays; time is two queues and one timer for all.

import type { Clock } from '../../core/clock.ts'
import { FAILED_SOCKET, FAILED_TIMEOUT } from '../messages/answer-batch.ts'
import { OVER_TCP } from '../messages/client-columns.ts'
import { DelayQueue } from './delay-queue.ts'
import { DueTimer } from './due-timer.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { RetryBudget, retryDelay, retryLanes } from './retry-policy.ts'
import type { ServerPool } from './server-pool.ts'
import type { UpstreamSocket } from './upstream-socket.ts'
import type { UpstreamTcp } from './upstream-tcp.ts'
import type { UpstreamUdp } from './upstream-udp.ts'
import type { Waits } from './waits.ts'

/** Due slots handled in one tick, so that a server's death stops nothing else: some 4 ms of work. */
const DUE_PER_TICK_MAX = 2048
/** A query's repetitions over TCP: the second only when the first one's connection ended. */
const REPEATS_PER_QUERY = 2
/** Repetitions over TCP that wait at once: forged answers cause no more than these on a server's TCP. */
const REPEATS_MAX = 4096
/** A server that answered within this is up whatever its TCP does: it may have none, or be flooded [A4]. */
const ALIVE_MS = 1000
/** The server of a query is whom the pool gives. */
export const OF_POOL = -1

export interface AttemptsOptions {
  readonly clock: Clock
  readonly inFlight: InFlightTable
  readonly waits: Waits
  readonly pool: ServerPool
  /** By server; those of the pool come first. */
  readonly udp: readonly (UpstreamUdp | undefined)[]
  readonly tcp: readonly (UpstreamTcp | undefined)[]
  /** Milliseconds for the whole query. */
  readonly timeout: number
  readonly attempts: number
  /** The query has ended without an answer: FAILED_TIMEOUT or FAILED_SOCKET. Its waits have ended. */
  readonly onFailed: (slot: number, reason: number) => void
}

export class Attempts {
  readonly counters = {
    /** Attempts after the first. */
    retries: 0,
    /** Overdue answers that the budget allowed no retry for. */
    retriesDenied: 0,
    /** Queries asked again over TCP after a mismatch, and those that the bound forbade. */
    mismatchRepeats: 0,
    repeatsDenied: 0,
  }
  readonly #options: AttemptsOptions
  readonly #deadlines: DelayQueue
  readonly #attemptTimes: DelayQueue
  /** Attempts made, by slot. */
  readonly #made: Uint8Array
  /** The one server that may be asked, or OF_POOL. */
  readonly #only: Int32Array
  readonly #firstServers: Uint16Array
  readonly #lastServers: Uint16Array
  /** Servers asked, bit `server & 31`. */
  readonly #asked: Uint32Array
  /** How often the query was repeated over TCP. */
  readonly #repeated: Uint8Array
  #repeating = 0
  readonly #budget = new RetryBudget()
  readonly #timer: DueTimer

  constructor(options: AttemptsOptions) {
    this.#options = options
    this.#timer = new DueTimer(options.clock, () => this.#tick())
    const { capacity } = options.inFlight
    this.#deadlines = new DelayQueue(capacity, [options.timeout])
    this.#attemptTimes = new DelayQueue(capacity, retryLanes(options.timeout, options.attempts))
    this.#made = new Uint8Array(capacity)
    this.#only = new Int32Array(capacity)
    this.#firstServers = new Uint16Array(capacity)
    this.#lastServers = new Uint16Array(capacity)
    this.#asked = new Uint32Array(capacity)
    this.#repeated = new Uint8Array(capacity)
  }

  /** Sends a query that has just been taken, to that server or OF_POOL. It may fail at once. */
  begin(slot: number, only: number): void {
    const now = this.#options.clock.now()
    this.#made[slot] = 0
    this.#repeated[slot] = 0
    this.#asked[slot] = 0
    this.#only[slot] = only
    const due = this.#deadlines.add(slot, now)
    this.#next(slot, now)
    this.#timer.arm(now, due)
  }

  /** The wait has its answer: tells the pool, and ends all waiting for the query. */
  answered(wait: number, server: number, servfail: boolean): void {
    const { waits, pool, clock } = this.#options
    const slot = waits.slotOf(wait)
    this.#budget.answered()
    if (server < pool.servers.length) {
      const now = clock.now()
      const overTcp = waits.socketOf(wait)?.overTcp === true
      pool.answeredAt[server] = now
      pool.answered(server, servfail, overTcp ? undefined : now - waits.sinceOf(wait))
      if (this.#firstServers[slot] === pool.first) pool.won(server)
    }
    this.#endWait(wait, false)
    this.end(slot)
  }

  /** An answer came that no query waits for any more, or a probe's, sent at `sentAt`. */
  answeredLate(socket: UpstreamSocket, servfail: boolean, sentAt: number): void {
    const { pool, clock } = this.#options
    if (socket.server >= pool.servers.length) return
    const now = clock.now()
    pool.answeredAt[socket.server] = now
    pool.answered(socket.server, servfail, socket.overTcp ? undefined : now - sentAt)
  }

  /** The one server that a query may ask, or OF_POOL. */
  onlyOf(slot: number): number {
    return this.#only[slot]!
  }

  /** Ends all waiting for a query; answers that still come are late. */
  end(slot: number): void {
    const { waits } = this.#options
    this.#deadlines.remove(slot)
    this.#attemptTimes.remove(slot)
    for (let k = 0; k < waits.width; k++) {
      const wait = waits.at(slot, k)
      if (waits.isActive(wait)) this.#endWait(wait, true)
    }
  }

  /** Asks the query of a UDP wait once more over TCP, at the same server; false when that was done before. */
  repeatOverTcp(wait: number): boolean {
    const { waits, clock } = this.#options
    const slot = waits.slotOf(wait)
    const socket = waits.socketOf(wait)
    if (socket === undefined || socket.overTcp || this.#repeated[slot] !== 0) return false
    this.#repeat(slot, socket.server, clock.now())
    return true
  }

  #repeat(slot: number, server: number, now: number): void {
    const { waits, tcp, attempts } = this.#options
    this.#repeated[slot]!++
    if (this.#repeating >= REPEATS_MAX) {
      this.counters.repeatsDenied++
      return
    }
    this.counters.mismatchRepeats++
    if (waits.begin(slot, waits.at(slot, attempts), tcp[server]?.pick(), now)) this.#repeating++
  }

  /** Everything that waits on a failed socket goes on elsewhere. */
  fault(socket: UpstreamSocket): void {
    const { waits, clock, attempts } = this.#options
    const now = clock.now()
    this.#failedAt(socket.server, socket.overTcp, now)
    // Taken first: the next attempts may use the same socket again.
    const failed: number[] = []
    for (let wait = waits.newestOf(socket.number); wait >= 0; wait = waits.olderThan(wait)) {
      failed.push(wait)
    }
    for (const wait of failed) this.#endWait(wait, false)
    for (const wait of failed) {
      const slot = waits.slotOf(wait)
      const isRepetition = wait === waits.at(slot, attempts)
      if (isRepetition && this.#repeated[slot]! < REPEATS_PER_QUERY && this.#deadlines.has(slot)) {
        this.#repeat(slot, socket.server, now)
      }
      // An older attempt, or the repetition, leaves the newest to go on.
      const newest = wait === waits.at(slot, this.#made[slot]! - 1)
      if (this.#deadlines.has(slot) && (newest || !this.#waitsAnywhere(slot))) this.#next(slot, now)
    }
  }

  stop(): void {
    this.#timer.stop()
  }

  /** Makes the next attempt that can be sent; without one the query fails, unless an earlier attempt still waits. */
  #next(slot: number, now: number): void {
    const { waits, udp, tcp, attempts, inFlight, onFailed } = this.#options
    const links = inFlight.transports[slot] === OVER_TCP ? tcp : udp
    while (this.#made[slot]! < attempts) {
      const server = this.#choose(slot)
      const attempt = this.#made[slot]!++
      if (attempt === 0) this.#firstServers[slot] = server
      else this.counters.retries++
      this.#lastServers[slot] = server
      this.#asked[slot]! |= 1 << (server & 31)
      if (waits.begin(slot, waits.at(slot, attempt), links[server]?.pick(), now)) {
        const lane = this.#attemptTimes.laneFor(this.#delayAfter(slot, server))
        this.#timer.arm(now, this.#attemptTimes.add(slot, now, lane))
        return
      }
      this.#failedAt(server, links === tcp, now)
    }
    this.#attemptTimes.remove(slot)
    if (this.#waitsAnywhere(slot)) return
    this.end(slot)
    onFailed(slot, FAILED_SOCKET)
  }

  #choose(slot: number): number {
    const { pool } = this.#options
    const only = this.#only[slot]!
    if (only !== OF_POOL) return only
    return this.#made[slot] === 0
      ? pool.begin()
      : pool.next(this.#asked[slot]!, this.#lastServers[slot]!)
  }

  #delayAfter(slot: number, server: number): number {
    const { pool, timeout, attempts } = this.#options
    const ofPool = server < pool.servers.length
    const elsewhere = this.#only[slot] === OF_POOL && pool.fresh(this.#asked[slot]!) >= 0
    const overdue = ofPool ? pool.rtt.timeout(server) : undefined
    return retryDelay(overdue, elsewhere, timeout / attempts)
  }

  #endWait(wait: number, mayAnswer: boolean): void {
    const { waits, attempts } = this.#options
    if (wait === waits.at(waits.slotOf(wait), attempts)) this.#repeating--
    waits.end(wait, mayAnswer)
  }

  #failedAt(server: number, overTcp: boolean, now: number): void {
    const { pool } = this.#options
    if (server >= pool.servers.length) return
    if (overTcp && now - pool.answeredAt[server]! < ALIVE_MS) return
    pool.failedAttempt(server)
  }

  /** The newest attempt of a query has had no answer in its time. */
  #failedLast(slot: number, now: number): void {
    const overTcp = this.#options.inFlight.transports[slot] === OVER_TCP
    this.#failedAt(this.#lastServers[slot]!, overTcp, now)
  }

  #waitsAnywhere(slot: number): boolean {
    const { waits } = this.#options
    for (let k = 0; k < waits.width; k++) if (waits.isActive(waits.at(slot, k))) return true
    return false
  }

  #tick(): void {
    const now = this.#options.clock.now()
    for (let i = 0; i < DUE_PER_TICK_MAX; i++) {
      const slot = this.#deadlines.takeDue(now)
      if (slot < 0) break
      if (this.#attemptTimes.has(slot)) this.#failedLast(slot, now)
      this.#doubtTcp(slot, now)
      this.end(slot)
      this.#options.onFailed(slot, FAILED_TIMEOUT)
    }
    for (let i = 0; i < DUE_PER_TICK_MAX; i++) {
      const slot = this.#attemptTimes.takeDue(now)
      if (slot < 0) break
      this.#overdue(slot, now)
    }
    this.#timer.arm(now, Math.min(this.#deadlines.nextDue, this.#attemptTimes.nextDue))
  }

  /** The newest attempt has had no answer in time. */
  #overdue(slot: number, now: number): void {
    this.#failedLast(slot, now)
    this.#doubtTcp(slot, now)
    if (this.#made[slot]! >= this.#options.attempts) return
    if (this.#budget.take()) this.#next(slot, now)
    else this.counters.retriesDenied++
  }

  /** Connections that have been silent for an attempt's share of the time take no more queries. */
  #doubtTcp(slot: number, now: number): void {
    const { waits, tcp, timeout, attempts, inFlight } = this.#options
    if (inFlight.transports[slot] !== OVER_TCP) return
    for (let k = 0; k < waits.width; k++) {
      const wait = waits.at(slot, k)
      if (!waits.isActive(wait) || now - waits.sinceOf(wait) < timeout / attempts) continue
      const socket = waits.socketOf(wait)
      if (socket !== undefined) tcp[socket.server]?.doubt(socket.number, waits.sinceOf(wait))
    }
  }
}
