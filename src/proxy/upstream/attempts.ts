// Attempts sends queries to servers, and decides which server is asked next and when. A query has one deadline and up to `attempts`
// attempts. An earlier attempt continues to wait during the next attempt, so a slow server can still answer. After an error from
// the kernel, the next attempt follows at once. Without an answer, it follows when the answer is overdue, if the budget allows a
// retry (retry-policy.ts). A query can also be repeated once over TCP, and once more if the connection of this repetition ends
// [A13]. Typed arrays hold the state per slot. Two queues and one timer handle all due times.

import type { Clock } from '../../core/clock.ts'
import { FAILED_SOCKET, FAILED_TIMEOUT } from '../messages/answer-batch.ts'
import { OVER_TCP } from '../messages/client-columns.ts'
import { DelayQueue, DueTimer } from './due.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { RetryBudget, retryDelay, retryLanes } from './retry-policy.ts'
import type { ServerPool } from './server-pool.ts'
import type { UpstreamSocket } from './upstream-socket.ts'
import type { UpstreamTcp } from './upstream-tcp.ts'
import type { UpstreamUdp } from './upstream-udp.ts'
import type { Waits } from './waits.ts'

/** The largest number of due slots that one tick takes from a queue: about 4 ms of work. A failed server delays nothing for longer. */
const DUE_PER_TICK_MAX = 2048
/** The largest number of TCP repetitions per query. The second follows only if the connection of the first has ended. */
const REPEATS_PER_QUERY = 2
/** The largest number of TCP repetitions that wait at the same time. It limits the TCP load that forged answers can cause. */
const REPEATS_MAX = 4096
/** If a server answered within this time (ms), a failure of its TCP does not count: it can be without TCP, or flooded [A4]. */
const ALIVE_MS = 1000
/** This value in place of a server's number means that the pool chooses the server. */
export const OF_POOL = -1

export interface AttemptsOptions {
  readonly clock: Clock
  readonly inFlight: InFlightTable
  readonly waits: Waits
  readonly pool: ServerPool
  /** The UDP sockets of each server. Servers of the pool come first. */
  readonly udp: readonly (UpstreamUdp | undefined)[]
  readonly tcp: readonly (UpstreamTcp | undefined)[]
  /** The time of a whole query, in milliseconds. */
  readonly timeout: number
  readonly attempts: number
  /** Called when a query ends without an answer, after its waits have ended. `reason` is FAILED_TIMEOUT or FAILED_SOCKET. */
  readonly onFailed: (slot: number, reason: number) => void
}

export class Attempts {
  readonly counters = {
    /** Attempts after the first. */
    retries: 0,
    /** Retries that the budget did not allow. */
    retriesDenied: 0,
    /** Queries that were repeated over TCP after a mismatch. */
    mismatchRepeats: 0,
    /** Repetitions over TCP that the bound did not allow. */
    repeatsDenied: 0,
  }
  readonly #options: AttemptsOptions
  readonly #deadlines: DelayQueue
  readonly #attemptTimes: DelayQueue
  /** The number of attempts that were made, by slot. */
  readonly #made: Uint8Array
  /** The only server that can be asked, by slot, or OF_POOL. */
  readonly #only: Int32Array
  readonly #firstServers: Uint16Array
  readonly #lastServers: Uint16Array
  /** The servers that were asked, by slot: bit `server & 31`. */
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
    this.#attemptTimes = new DelayQueue(capacity, retryLanes(options))
    this.#made = new Uint8Array(capacity)
    this.#only = new Int32Array(capacity)
    this.#firstServers = new Uint16Array(capacity)
    this.#lastServers = new Uint16Array(capacity)
    this.#asked = new Uint32Array(capacity)
    this.#repeated = new Uint8Array(capacity)
  }

  /** Sends the query of a slot that was just taken, to server `only` or OF_POOL. It can call `onFailed` during the call. */
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

  /** Handles the answer to a wait: reports it to the pool, and ends all waits of the query. */
  answered(wait: number, server: number, servfail: boolean): void {
    const { waits, pool, clock } = this.#options
    const slot = waits.slotOf(wait)
    this.#budget.answered()
    const now = clock.now()
    pool.addRoundTrip(server, now - waits.sinceOf(wait))
    if (server < pool.servers.length) {
      const overTcp = waits.socketOf(wait)?.overTcp === true
      pool.answeredAt[server] = now
      pool.answered(server, servfail, overTcp ? undefined : now - waits.sinceOf(wait))
      if (this.#firstServers[slot] === pool.first) pool.won(server)
    }
    this.#endWait(wait, false)
    this.end(slot)
  }

  /** Handles a late answer, to a message that was sent at `sentAt` and for which no query waits, or to a probe. */
  answeredLate(socket: UpstreamSocket, servfail: boolean, sentAt: number): void {
    const { pool, clock } = this.#options
    const now = clock.now()
    pool.addRoundTrip(socket.server, now - sentAt)
    if (socket.server >= pool.servers.length) return
    pool.answeredAt[socket.server] = now
    pool.answered(socket.server, servfail, socket.overTcp ? undefined : now - sentAt)
  }

  /** Returns the only server that a query can ask, or OF_POOL. */
  onlyOf(slot: number): number {
    return this.#only[slot]!
  }

  /** Ends all waits of a query. Answers that still arrive are late. */
  end(slot: number): void {
    const { waits } = this.#options
    this.#deadlines.remove(slot)
    this.#attemptTimes.remove(slot)
    for (let k = 0; k < waits.width; k++) {
      const wait = waits.at(slot, k)
      if (waits.isActive(wait)) this.#endWait(wait, true)
    }
  }

  /** Repeats the query of a UDP wait over TCP, at the same server. Returns false if the query was repeated before. */
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

  /**
   * Handles guesses at the ids of a UDP socket [A1]: its queries accept no answer from it any more. They are repeated over TCP. A query
   * that was repeated before, and waits nowhere else, makes its next attempt, which has another port.
   */
  mistrust(socket: UpstreamSocket): void {
    const { waits, clock } = this.#options
    const now = clock.now()
    const doubted = waits.listOf(socket.number)
    for (const wait of doubted) this.#endWait(wait, true)
    for (const wait of doubted) {
      const slot = waits.slotOf(wait)
      if (this.#repeated[slot] === 0) this.#repeat(slot, socket.server, now)
      if (!waits.isWaiting(slot)) this.#next(slot, now)
    }
  }

  /** Handles the failure of a socket: queries that wait on the socket make their next attempt. */
  fault(socket: UpstreamSocket): void {
    const { waits, clock, attempts } = this.#options
    const now = clock.now()
    this.#failedAt(socket.server, socket.overTcp, now)
    const failed = waits.listOf(socket.number)
    for (const wait of failed) this.#endWait(wait, false)
    for (const wait of failed) {
      const slot = waits.slotOf(wait)
      const isRepetition = wait === waits.at(slot, attempts)
      if (isRepetition && this.#repeated[slot]! < REPEATS_PER_QUERY && this.#deadlines.has(slot)) {
        this.#repeat(slot, socket.server, now)
      }
      // If an older attempt or the repetition has failed, the newest attempt continues to wait.
      const newest = wait === waits.at(slot, this.#made[slot]! - 1)
      if (this.#deadlines.has(slot) && (newest || !waits.isWaiting(slot))) this.#next(slot, now)
    }
  }

  stop(): void {
    this.#timer.stop()
  }

  /** Makes the next attempt that can be sent. If none can be sent and no earlier attempt waits, the query fails. */
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
    if (waits.isWaiting(slot)) return
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
    const { pool } = this.#options
    const ofPool = server < pool.servers.length
    const elsewhere = this.#only[slot] === OF_POOL && pool.fresh(this.#asked[slot]!) >= 0
    const overdue = ofPool ? pool.rtt.timeout(server) : undefined
    return retryDelay(overdue, elsewhere, this.#options)
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

  /** Counts the newest attempt of a query as failed, because it got no answer in time. */
  #failedLast(slot: number, now: number): void {
    const overTcp = this.#options.inFlight.transports[slot] === OVER_TCP
    this.#failedAt(this.#lastServers[slot]!, overTcp, now)
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

  /** Handles an attempt that got no answer in time: makes the next attempt, if the budget allows it. */
  #overdue(slot: number, now: number): void {
    this.#failedLast(slot, now)
    this.#doubtTcp(slot, now)
    if (this.#made[slot]! >= this.#options.attempts) return
    if (this.#budget.take()) this.#next(slot, now)
    else this.counters.retriesDenied++
  }

  /** If a query over TCP has waited `timeout / attempts`, and its connection was silent since, no new query uses the connection. */
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
