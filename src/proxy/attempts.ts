// The attempts of queries in flight: which server, which socket, which id, and when the next one is due. A query
// gets `attempts` tries round the servers within one deadline; an earlier attempt goes on waiting while the
// next is made, so a slow server can still answer. A failed socket brings the next attempt at once. At most
// `attempts` packets leave per query, and one repetition over TCP [A13].
// State per slot is in typed arrays; time is two queues and one timer for all.

import type { Clock, Timer } from '../core/clock.ts'
import { FAILED_SOCKET, FAILED_TIMEOUT } from './answer-batch.ts'
import { OVER_TCP } from './client-columns.ts'
import { DelayQueue } from './delay-queue.ts'
import type { InFlightTable } from './in-flight.ts'
import type { RandomPool } from './random.ts'
import type { ServerPool } from './server-pool.ts'
import type { SocketNumbers, UpstreamSocket } from './upstream-socket.ts'
import type { UpstreamTcp } from './upstream-tcp.ts'
import type { UpstreamUdp } from './upstream-udp.ts'
import type { WaitTable } from './wait-table.ts'

/** Draws of an id that isn't in flight on the socket: with half of all ids in flight 1 query in 2^32 fails. */
const ID_TRIES = 32
/** Due times are exact to this many milliseconds. */
const TICK_MS = 10
/** Due slots handled in one tick, so that a server's death stops nothing else: some 4 ms of work. */
const DUE_PER_TICK_MAX = 2048

export interface AttemptsOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly inFlight: InFlightTable
  readonly waits: WaitTable
  readonly numbers: SocketNumbers
  readonly pool: ServerPool
  readonly udp: readonly UpstreamUdp[]
  readonly tcp: readonly UpstreamTcp[]
  /** Milliseconds for the whole query. */
  readonly timeout: number
  readonly attempts: number
  /** The query has ended without an answer: FAILED_TIMEOUT or FAILED_SOCKET. Its waits have ended. */
  readonly onFailed: (slot: number, reason: number) => void
}

export class Attempts {
  readonly counters = {
    /** Queries sent, all attempts and repetitions. */
    sentUdp: 0,
    sentTcp: 0,
    /** Attempts after the first. */
    retries: 0,
    /** Queries asked again over TCP after a mismatch. */
    mismatchRepeats: 0,
    /** Attempts that found no socket or no free id, or whose send was refused. */
    unsendable: 0,
  }
  readonly #options: AttemptsOptions
  readonly #deadlines: DelayQueue
  readonly #attemptTimes: DelayQueue
  /** Attempts made, by slot. */
  readonly #made: Uint8Array
  readonly #firstServers: Uint16Array
  /** 1 once the query was repeated over TCP. */
  readonly #repeated: Uint8Array
  #timer: Timer | undefined
  /** When the timer fires, in the clock's milliseconds. */
  #timerDue = Infinity
  readonly #runTick = (): void => this.#tick()

  constructor(options: AttemptsOptions) {
    this.#options = options
    const { capacity } = options.inFlight
    this.#deadlines = new DelayQueue(capacity, options.timeout)
    this.#attemptTimes = new DelayQueue(capacity, options.timeout / options.attempts)
    this.#made = new Uint8Array(capacity)
    this.#firstServers = new Uint16Array(capacity)
    this.#repeated = new Uint8Array(capacity)
  }

  /** Sends a query that has just been taken. It may fail at once. */
  begin(slot: number): void {
    const now = this.#options.clock.now()
    this.#made[slot] = 0
    this.#repeated[slot] = 0
    this.#firstServers[slot] = this.#options.pool.first
    this.#deadlines.add(slot, now)
    this.#next(slot, now)
    this.#arm(now)
  }

  /** Ends all waiting for a query. */
  end(slot: number): void {
    const { waits } = this.#options
    this.#deadlines.remove(slot)
    this.#attemptTimes.remove(slot)
    for (let k = 0; k < waits.width; k++) {
      const wait = waits.at(slot, k)
      if (waits.isActive(wait)) this.#endWait(wait)
    }
  }

  /** Asks the query of a UDP wait once more over TCP, at the same server; false when that was done before. */
  repeatOverTcp(wait: number): boolean {
    const { waits, numbers, tcp, attempts } = this.#options
    const slot = waits.slotOf(wait)
    const socket = numbers.get(waits.socketOf(wait))
    if (socket === undefined || socket.overTcp || this.#repeated[slot] === 1) return false
    this.#repeated[slot] = 1
    this.counters.mismatchRepeats++
    this.#send(slot, waits.at(slot, attempts), tcp[socket.server]?.pick())
    return true
  }

  /** Everything that waits on a failed socket goes on elsewhere. */
  fault(socket: UpstreamSocket): void {
    const { waits, pool, clock } = this.#options
    pool.failed(socket.server)
    // Taken first: the next attempts may use the same socket again.
    const failed: number[] = []
    for (let wait = waits.newestOf(socket.number); wait >= 0; wait = waits.olderThan(wait)) {
      failed.push(wait)
    }
    for (const wait of failed) this.#endWait(wait)
    const now = clock.now()
    for (const wait of failed) {
      const slot = waits.slotOf(wait)
      // An older attempt, or the repetition, leaves the newest to go on.
      const newest = wait === waits.at(slot, this.#made[slot]! - 1)
      if (this.#deadlines.has(slot) && (newest || !this.#waitsAnywhere(slot))) this.#next(slot, now)
    }
    this.#arm(now)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Makes the next attempt that can be sent; without one the query fails, unless an earlier attempt still waits. */
  #next(slot: number, now: number): void {
    const { waits, pool, udp, tcp, attempts, inFlight, onFailed } = this.#options
    const links = inFlight.transports[slot] === OVER_TCP ? tcp : udp
    while (this.#made[slot]! < attempts) {
      const attempt = this.#made[slot]!++
      if (attempt > 0) this.counters.retries++
      const server = pool.forAttempt(this.#firstServers[slot]!, attempt)
      if (this.#send(slot, waits.at(slot, attempt), links[server]?.pick())) {
        if (attempt + 1 < attempts) this.#attemptTimes.add(slot, now)
        return
      }
      pool.failed(server)
    }
    this.#attemptTimes.remove(slot)
    if (this.#waitsAnywhere(slot)) return
    this.end(slot)
    onFailed(slot, FAILED_SOCKET)
  }

  /** Sends the query on a socket under an id of its own and waits there; false when that's not possible. */
  #send(slot: number, wait: number, socket: UpstreamSocket | undefined): boolean {
    const { waits, inFlight } = this.#options
    const id = socket === undefined ? -1 : this.#freeId(socket.number)
    if (socket === undefined || id < 0) {
      this.counters.unsendable++
      return false
    }
    if (!socket.send(inFlight.octets(slot), inFlight.offset(slot), inFlight.length(slot), id)) {
      this.counters.unsendable++
      return false
    }
    waits.add(wait, socket.number, id)
    if (socket.overTcp) this.counters.sentTcp++
    else this.counters.sentUdp++
    return true
  }

  /** A random id that the socket doesn't wait for, or -1. */
  #freeId(socket: number): number {
    const { waits, random } = this.#options
    for (let i = 0; i < ID_TRIES; i++) {
      const id = random.uint16()
      if (waits.find(socket, id) < 0) return id
    }
    return -1
  }

  #endWait(wait: number): void {
    const { waits, numbers } = this.#options
    const socket = waits.socketOf(wait)
    waits.remove(wait)
    if (waits.countOf(socket) === 0) numbers.get(socket)?.drained()
  }

  #waitsAnywhere(slot: number): boolean {
    const { waits } = this.#options
    for (let k = 0; k < waits.width; k++) if (waits.isActive(waits.at(slot, k))) return true
    return false
  }

  #tick(): void {
    this.#timer = undefined
    this.#timerDue = Infinity
    const { clock, pool, onFailed } = this.#options
    const now = clock.now()
    for (let i = 0; i < DUE_PER_TICK_MAX; i++) {
      const slot = this.#deadlines.takeDue(now)
      if (slot < 0) break
      pool.failed(this.#lastServer(slot))
      this.end(slot)
      onFailed(slot, FAILED_TIMEOUT)
    }
    for (let i = 0; i < DUE_PER_TICK_MAX; i++) {
      const slot = this.#attemptTimes.takeDue(now)
      if (slot < 0) break
      pool.failed(this.#lastServer(slot))
      this.#doubtTcp(slot, now - this.#attemptTimes.delay)
      this.#next(slot, now)
    }
    this.#arm(now)
  }

  #lastServer(slot: number): number {
    return this.#options.pool.forAttempt(this.#firstServers[slot]!, this.#made[slot]! - 1)
  }

  /** A connection that has been silent since the attempt was sent takes no more queries. */
  #doubtTcp(slot: number, sentAt: number): void {
    const { waits, tcp } = this.#options
    const wait = waits.at(slot, this.#made[slot]! - 1)
    if (waits.isActive(wait)) tcp[this.#lastServer(slot)]?.doubt(waits.socketOf(wait), sentAt)
  }

  /**
   * Sets the timer for the first due time, but no sooner than a tick from now, unless it fires before. The timer's
   * own time is compared, not the due one: else a due time nearer than a tick would push the timer off with each query.
   */
  #arm(now: number): void {
    const next = Math.min(this.#deadlines.nextDue, this.#attemptTimes.nextDue)
    const due = Math.max(next, now + TICK_MS)
    if (due >= this.#timerDue) return
    this.#timer?.cancel()
    this.#timerDue = due
    this.#timer = this.#options.clock.after(due - now, this.#runTick)
  }
}
