// Forwards queries to the configured servers and hands back what they answer, in batches. A query that came
// over TCP goes over TCP (RFC 5625 4.4.1). A message is an answer only if its socket, id and question match
// (SEMANTICS 4; a connected socket vouches for the addresses); anything else is dropped and counted, the wait goes on, and
// the query is asked once more over TCP [F1, A4, A5]. What comes after a query has ended is dropped [A14].
//
// The composition of in-flight table (who asked what), coalescing (who asked the same), wait table (which socket waits
// for which id), attempts (when to ask whom), the servers' health and sockets. Nothing is allocated per query.

import type { Clock, Timer } from '../core/clock.ts'
import type { EndpointId, Generation } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { hashOctets, nameLength } from '../core/name.ts'
import { FLAG_QR, MASK_RCODE, RCODE_SERVFAIL } from '../dns/codes.ts'
import { questionEquals } from '../dns/match.ts'
import type { QueryView } from '../dns/query.ts'
import { HEADER_OCTETS, readName, u16 } from '../dns/wire.ts'
import { FAILED_TIMEOUT, type AnswerBatch, type FailureBatch } from './answer-batch.ts'
import { Attempts, OF_POOL } from './attempts.ts'
import type { MessageBatch } from './batch.ts'
import { Coalescing } from './coalescing.ts'
import { Delivery } from './delivery.ts'
import { CLIENT_FULL, hashQuestion, InFlightTable, TABLE_FULL } from './in-flight.ts'
import { LateAnswers } from './late-answers.ts'
import { Probes } from './probes.ts'
import { RandomPool, type RandomSource } from './random.ts'
import { RetryBudget } from './retry-budget.ts'
import { ServerPool, type ServerAddress } from './server-pool.ts'
import { SlotView } from './slot-view.ts'
import type { Datagrams } from './datagrams.ts'
import type { Streams } from './streams.ts'
import { PortableStreams } from './tcp-portable.ts'
import { SocketNumbers, type UpstreamEvents, type UpstreamSocket } from './upstream-socket.ts'
import { PortableDatagrams } from './udp-portable.ts'
import { UpstreamTcp } from './upstream-tcp.ts'
import { UpstreamUdp } from './upstream-udp.ts'
import { WaitTable } from './wait-table.ts'
import { Waiting } from './waiting.ts'

export interface UpstreamLimits {
  /** `upstreams.timeout` in milliseconds, for the whole query. */
  readonly timeout: number
  /** `upstreams.attempts`, 1..200. */
  readonly attempts: number
  /** `limits.queries-in-flight` and `limits.queries-in-flight-per-client`. */
  readonly inFlight: number
  readonly inFlightPerClient: number
}

export const DEFAULT_UPSTREAM_LIMITS: UpstreamLimits = {
  timeout: 4000,
  attempts: 3,
  inFlight: 65_536,
  inFlightPerClient: 4_096,
}

export interface UpstreamOptions {
  readonly clock: Clock
  readonly random: RandomSource
  /** At least one. */
  readonly servers: readonly ServerAddress[]
  /** Accepted answers; each slot is released by the receiver once its client is answered. */
  readonly onAnswers: (answers: AnswerBatch) => void
  /** Queries that ended without an answer; likewise. */
  readonly onFailures: (failures: FailureBatch) => void
  readonly limits?: UpstreamLimits
  /** What carries TCP; default Node's sockets. */
  readonly streams?: Streams
  /** What carries UDP; likewise. */
  readonly datagrams?: Datagrams
  /** UDP sockets per server, and after how many queries or milliseconds one is renewed. */
  readonly udp?: {
    readonly sockets?: number
    readonly renewQueries?: number
    readonly renewMs?: number
  }
}

/** `full` and `client-full`: a bound forbids it, and the client gets SERVFAIL (SEMANTICS 6). */
export type ForwardResult = 'forwarded' | 'full' | 'client-full'

/** Waits of a socket looked at, newest first, to find the query that a wrong id was a guess for. */
const SUSPECTS_MAX = 256
const SWEEP_MS = 1000
/** `. NS IN`, recursion desired (RFC 1035 4.1); the id is the sender's. */
const ROOT_NS_QUERY = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1)

export class Upstream {
  readonly inFlight: InFlightTable
  readonly pool: ServerPool
  /** By server; their counters are theirs. */
  readonly udp: readonly UpstreamUdp[]
  readonly tcp: readonly UpstreamTcp[]
  readonly waiting: Waiting
  readonly attempts: Attempts
  readonly probes: Probes
  readonly counters = {
    /** Queries taken; `coalesced` of them were not asked, their answer is another's copy. */
    forwarded: 0,
    coalesced: 0,
    refusedFull: 0,
    refusedClientFull: 0,
    answers: 0,
    timeouts: 0,
    socketFailures: 0,
    /** Messages with an id that the socket doesn't wait for: wrong, or far too late. */
    unexpected: 0,
    /** Answers to attempts that nobody waits for any more, and to probes. */
    late: 0,
    /** Messages with the id of a wait that are no reply to its question. */
    mismatched: 0,
  }
  readonly #waits: WaitTable
  readonly #late = new LateAnswers()
  readonly #coalescing: Coalescing
  readonly #numbers = new SocketNumbers()
  readonly #delivery: Delivery
  readonly #view = new SlotView()
  readonly #name = new Uint8Array(255)
  /** 1 once the slot was handed to the pipeline. */
  readonly #handed: Uint8Array
  readonly #sweeper: Timer

  constructor(options: UpstreamOptions) {
    const { clock, servers, onAnswers, onFailures, limits = DEFAULT_UPSTREAM_LIMITS } = options
    invariant(servers.length > 0, 'there is a server to ask')
    const random = new RandomPool(options.random)
    const capacity = limits.inFlight
    this.inFlight = new InFlightTable({ capacity, perClient: limits.inFlightPerClient })
    // One wait more than attempts: the repetition over TCP after a mismatch.
    this.#waits = new WaitTable(capacity, limits.attempts + 1)
    this.#handed = new Uint8Array(capacity)
    this.#coalescing = new Coalescing(this.inFlight, false)
    this.pool = new ServerPool(servers)
    const { streams = new PortableStreams(), datagrams = new PortableDatagrams() } = options
    const shared = { clock, streams, datagrams, numbers: this.#numbers, events: this.#events() }
    this.udp = servers.map(
      (address, server) => new UpstreamUdp({ ...shared, ...options.udp, random, address, server }),
    )
    this.tcp = servers.map((address, server) => new UpstreamTcp({ ...shared, address, server }))
    this.#delivery = new Delivery({ clock, capacity, onAnswers, onFailures })
    datagrams.follow(this.#delivery, this.inFlight)
    this.waiting = new Waiting({
      clock,
      random,
      inFlight: this.inFlight,
      waits: this.#waits,
      numbers: this.#numbers,
      late: this.#late,
    })
    this.attempts = new Attempts({
      clock,
      inFlight: this.inFlight,
      waits: this.#waits,
      waiting: this.waiting,
      pool: this.pool,
      budget: new RetryBudget(),
      udp: this.udp,
      tcp: this.tcp,
      timeout: limits.timeout,
      attempts: limits.attempts,
      onFailed: (slot, reason) => this.#fail(slot, reason),
    })
    this.probes = new Probes({
      clock,
      random,
      pool: this.pool,
      send: (server) => this.waiting.probe(this.udp[server]?.pick(), ROOT_NS_QUERY),
    })
    this.#sweeper = clock.every(SWEEP_MS, () => this.#sweep())
  }

  /**
   * Forwards entry `index` of a batch, read into `query` with status 'ok'. It ends in exactly one entry of
   * `onAnswers` or `onFailures`, never before this call has returned.
   */
  forward(
    batch: MessageBatch,
    index: number,
    query: QueryView,
    endpoint: EndpointId,
    generation: Generation,
  ): ForwardResult {
    const slot = this.inFlight.take(batch, index, query, endpoint, generation)
    if (slot === TABLE_FULL) {
      this.counters.refusedFull++
      return 'full'
    }
    if (slot === CLIENT_FULL) {
      this.counters.refusedClientFull++
      return 'client-full'
    }
    this.#handed[slot] = 0
    this.counters.forwarded++
    if (this.#coalescing.join(slot)) this.counters.coalesced++
    else this.attempts.begin(slot, OF_POOL)
    return 'forwarded'
  }

  /** Frees a slot that came with an answer or a failure, once its client has been answered. */
  release(slot: number): void {
    invariant(this.#handed[slot] === 1, `slot ${slot} is released after its query has ended`)
    this.#handed[slot] = 0
    this.inFlight.release(slot)
  }

  /** Closes all sockets at once. Queries in flight end without a call. */
  stop(): void {
    this.#sweeper.cancel()
    this.attempts.stop()
    this.probes.stop()
    for (const link of this.udp) link.stop()
    for (const link of this.tcp) link.stop()
  }

  #events(): UpstreamEvents {
    return {
      onMessage: (socket, octets, offset, length) => this.#receive(socket, octets, offset, length),
      onFault: (socket) => this.attempts.fault(socket),
      isWaiting: (number) => this.#waits.countOf(number) > 0,
    }
  }

  #receive(socket: UpstreamSocket, octets: Uint8Array, offset: number, length: number): void {
    const wait = length < 2 ? -1 : this.#waits.find(socket.number, u16(octets, offset))
    if (wait < 0) {
      if (this.#isLate(socket, octets, offset, length)) return
      this.counters.unexpected++
      if (!socket.overTcp) this.#suspect(socket.number, octets, offset, length)
      return
    }
    const slot = this.#waits.slotOf(wait)
    this.#view.read(this.inFlight, slot)
    if (!questionEquals(octets, offset, length, this.#view)) {
      this.counters.mismatched++
      this.attempts.repeatOverTcp(wait)
      return
    }
    this.attempts.answered(wait, socket.server, isServfail(octets, offset))
    this.counters.answers++
    this.#coalescing.end(slot)
    for (let asker = slot; asker >= 0;) {
      const next = this.#coalescing.followerOf(asker)
      this.#handed[asker] = 1
      this.#delivery.answer(asker, socket.server, socket.overTcp, octets, offset, length)
      asker = next
    }
  }

  /** An answer that nobody waits for any more, or a probe's: its server lives. */
  #isLate(socket: UpstreamSocket, octets: Uint8Array, offset: number, length: number): boolean {
    if (length < HEADER_OCTETS || (u16(octets, offset + 2) & FLAG_QR) === 0) return false
    const sentAt = this.#late.take(socket.number, u16(octets, offset))
    if (sentAt < 0) return false
    this.counters.late++
    this.attempts.answeredLate(socket, isServfail(octets, offset), sentAt)
    return true
  }

  /** A reply with an unknown id that names a question in flight on the socket is taken for a guess at it [A4]. */
  #suspect(socket: number, octets: Uint8Array, offset: number, length: number): void {
    if (length < HEADER_OCTETS) return
    const end = offset + length
    const behind = readName(octets, offset, end, offset + HEADER_OCTETS, this.#name)
    if (behind < 0 || behind + 4 > end) return
    const nameHash = hashOctets(this.#name, 0, nameLength(this.#name))
    const hash = hashQuestion(nameHash, u16(octets, behind), u16(octets, behind + 2))
    let wait = this.#waits.newestOf(socket)
    for (let i = 0; i < SUSPECTS_MAX && wait >= 0; i++, wait = this.#waits.olderThan(wait)) {
      const slot = this.#waits.slotOf(wait)
      if (this.inFlight.questionHashes[slot] !== hash) continue
      this.#view.read(this.inFlight, slot)
      if (questionEquals(octets, offset, length, this.#view) && this.attempts.repeatOverTcp(wait)) {
        return
      }
    }
  }

  #fail(slot: number, reason: number): void {
    if (reason === FAILED_TIMEOUT) this.counters.timeouts++
    else this.counters.socketFailures++
    this.#coalescing.end(slot)
    for (let asker = slot; asker >= 0;) {
      const next = this.#coalescing.followerOf(asker)
      this.#handed[asker] = 1
      this.#delivery.failure(asker, reason)
      asker = next
    }
  }

  #sweep(): void {
    for (const link of this.udp) link.sweep()
    for (const link of this.tcp) link.sweep()
  }
}

function isServfail(octets: Uint8Array, offset: number): boolean {
  return (u16(octets, offset + 2) & MASK_RCODE) === RCODE_SERVFAIL
}
