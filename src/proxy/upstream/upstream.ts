// Upstream forwards queries to servers, and delivers their answers in batches. A query over TCP is forwarded over TCP (RFC 5625
// 4.4.1). A message is an answer only if its socket, id and question match (docs/spec/semantics 4); the socket is connected, so the
// kernel checks the addresses. Any other message is dropped and counted, and the wait continues. If such a message has the id or the
// question of a query that waits on this UDP socket, Upstream repeats that query once over TCP. After 16 such messages, Upstream
// accepts no answer from the socket. A message after the end of its query is dropped (docs/spec/correctness F1, A1, A4, A5, A14).
// Upstream consists of InFlightTable, Coalescing, Waits, Attempts, ServerPool and ServerLinks. It allocates nothing per query.

import type { Clock } from '../../core/clock.ts'
import type { EndpointId, Generation } from '../../core/ids.ts'
import { invariant } from '../../core/invariant.ts'
import { FLAG_QR, MASK_RCODE, RCODE_SERVFAIL } from '../../dns/codes.ts'
import type { QueryView } from '../../dns/query.ts'
import { HEADER_OCTETS, u16 } from '../../dns/wire.ts'
import {
  Delivery,
  FAILED_TIMEOUT,
  type AnswerBatch,
  type FailureBatch,
} from '../messages/answer-batch.ts'
import type { AskedServers } from './asked-servers.ts'
import { Attempts } from './attempts.ts'
import type { MessageBatch } from '../messages/batch.ts'
import { Coalescing } from './coalescing.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { CLIENT_FULL, InFlightTable, TABLE_FULL } from '../messages/in-flight.ts'
import { Probes } from './probes.ts'
import { RandomPool, type RandomSource } from '../../core/random.ts'
import { NO_LINK, ServerLinks, type UdpSocketOptions } from './server-links.ts'
import { ServerPool, type ServerAddress } from './server-pool.ts'
import { SlotView } from '../messages/slot-view.ts'
import type { Datagrams } from '../sockets/datagrams.ts'
import type { Streams } from '../sockets/streams.ts'
import { SocketNumbers, type UpstreamEvents, type UpstreamSocket } from './upstream-socket.ts'
import type { UpstreamTcp } from './upstream-tcp.ts'
import type { UpstreamUdp } from './upstream-udp.ts'
import { Waits } from './waits.ts'

export interface UpstreamLimits {
  /** `upstreams.timeout` in milliseconds, for the whole query. */
  readonly timeout: number
  /** `upstreams.attempts`, 1..16. */
  readonly attempts: number
  /** `limits.queries-in-flight`. */
  readonly inFlight: number
  /** `limits.queries-in-flight-per-client`. */
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
  /** The servers of the pool, at least one. */
  readonly servers: readonly ServerAddress[]
  /** The servers that clients asked; undefined if clients cannot choose the server. */
  readonly asked?: AskedServers | undefined
  /** Receives accepted answers. The receiver must release each slot when its client is answered. */
  readonly onAnswers: (answers: AnswerBatch) => void
  /** Receives queries that ended without an answer. The receiver must release each slot. */
  readonly onFailures: (failures: FailureBatch) => void
  readonly limits?: UpstreamLimits
  /** The TCP sockets. */
  readonly streams: Pick<Streams, 'connect'>
  /** The UDP sockets. */
  readonly datagrams: Pick<Datagrams, 'turn' | 'follow' | 'connect'>
  readonly udp?: UdpSocketOptions
}

/** `full` and `client-full`: a bound was reached, and the client gets SERVFAIL (docs/spec/semantics 6). */
export type ForwardResult = 'forwarded' | 'full' | 'client-full'

/** The query `. NS IN` with recursion desired (RFC 1035 4.1). `send` sets the id. */
const ROOT_NS_QUERY = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1)

export class Upstream {
  readonly inFlight: InFlightTable
  readonly pool: ServerPool
  /** The UDP links by server. Servers of the pool come first. */
  readonly udp: readonly UpstreamUdp[]
  readonly tcp: readonly UpstreamTcp[]
  readonly links: ServerLinks
  readonly waits: Waits
  readonly attempts: Attempts
  readonly probes: Probes
  readonly counters = {
    /** Queries that were forwarded, or joined a query that was forwarded. */
    forwarded: 0,
    /** Queries among these that follow another query and get a copy of its answer. */
    coalesced: 0,
    refusedFull: 0,
    refusedClientFull: 0,
    answers: 0,
    timeouts: 0,
    socketFailures: 0,
    /** Messages with an id for which the socket does not wait: forged, wrong or far too late. */
    unexpected: 0,
    /** Answers to probes, and answers for which no query waits any more. */
    late: 0,
    /** Messages with the id of a waiting query that are no reply to its question. */
    mismatched: 0,
  }
  readonly #coalescing: Coalescing
  readonly #numbers = new SocketNumbers()
  readonly #delivery: Delivery
  readonly #view = new SlotView()
  /** 1 if the slot's query has its answer or failure. */
  readonly #handed: Uint8Array
  readonly #repeat = (wait: number): boolean => this.attempts.repeatOverTcp(wait)

  constructor(options: UpstreamOptions) {
    const { clock, servers, streams, datagrams, onAnswers, onFailures } = options
    const { limits = DEFAULT_UPSTREAM_LIMITS } = options
    invariant(servers.length > 0, 'there is a server to ask')
    const random = new RandomPool(options.random)
    const capacity = limits.inFlight
    this.inFlight = new InFlightTable({ capacity, perClient: limits.inFlightPerClient })
    this.#handed = new Uint8Array(capacity)
    this.#coalescing = new Coalescing(this.inFlight, options.asked !== undefined)
    this.pool = new ServerPool(servers)
    this.links = new ServerLinks({
      clock,
      random,
      streams,
      datagrams,
      numbers: this.#numbers,
      events: this.#events(),
      servers,
      udp: options.udp,
      asked: options.asked,
    })
    this.udp = this.links.udp
    this.tcp = this.links.tcp
    this.#delivery = new Delivery({ clock, capacity, onAnswers, onFailures })
    datagrams.follow(this.#delivery, this.inFlight)
    this.waits = new Waits({
      clock,
      random,
      inFlight: this.inFlight,
      numbers: this.#numbers,
      timeout: limits.timeout,
      attempts: limits.attempts,
    })
    this.attempts = new Attempts({
      clock,
      inFlight: this.inFlight,
      waits: this.waits,
      pool: this.pool,
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
      send: (server) => this.waits.probe(this.links.pick(server), ROOT_NS_QUERY),
    })
  }

  /**
   * Forwards the query at `index` of the batch. `query` is the view of this query, and its read returned 'ok'. A forwarded query ends
   * with exactly one answer or failure in `onAnswers` or `onFailures`, after this call has returned.
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
    if (this.#coalescing.join(slot)) {
      this.counters.coalesced++
      return 'forwarded'
    }
    const server = this.links.begin(this.inFlight, slot)
    if (server !== NO_LINK) {
      this.attempts.begin(slot, server)
      return 'forwarded'
    }
    this.#coalescing.end(slot)
    this.inFlight.release(slot)
    this.counters.forwarded--
    this.counters.refusedFull++
    return 'full'
  }

  /**
   * Takes a slot for a query whose answer or failure is already known, without asking a server. The slot must be released as after
   * `forward`. Returns the slot, or TABLE_FULL or CLIENT_FULL at a bound.
   */
  takeAnswered(
    batch: MessageBatch,
    index: number,
    query: QueryView,
    endpoint: EndpointId,
    generation: Generation,
  ): number {
    const slot = this.inFlight.take(batch, index, query, endpoint, generation)
    if (slot >= 0) this.#handed[slot] = 1
    return slot
  }

  /** Frees the slot of an answer or a failure. Call it when its client has been answered. */
  release(slot: number): void {
    invariant(this.#handed[slot] === 1, 'a slot is released after its query has ended', slot)
    this.#handed[slot] = 0
    this.inFlight.release(slot)
  }

  /** Closes all sockets at once. Queries in flight end without a call of `onAnswers` or `onFailures`. */
  stop(): void {
    this.attempts.stop()
    this.probes.stop()
    this.links.stop()
  }

  #events(): UpstreamEvents {
    return {
      onMessage: (socket, message) => this.#receive(socket, message),
      onFault: (socket) => this.attempts.fault(socket),
      isWaiting: (number) => this.waits.countOf(number) > 0,
    }
  }

  #receive(socket: UpstreamSocket, message: MessageView): void {
    const { octets, offset } = message
    const wait = message.length < 2 ? -1 : this.waits.find(socket.number, u16(octets, offset))
    const slot = this.waits.slotOf(wait)
    const isAnswer = wait >= 0 && this.#view.accept(this.inFlight, slot, message)
    if (!isAnswer) return this.#drop(socket, message, wait)
    this.attempts.answered(wait, socket.server, isServfail(octets, offset))
    this.counters.answers++
    const chosen = this.attempts.onlyOf(slot)
    this.#coalescing.end(slot)
    for (let asker = slot; asker >= 0;) {
      const next = this.#coalescing.followerOf(asker)
      this.#handed[asker] = 1
      this.#delivery.answer(asker, socket.server, socket.overTcp, message)
      asker = next
    }
    this.links.end(chosen)
  }

  /** Handles a message that is no answer. `wait`: the wait with its id, or -1. */
  #drop(socket: UpstreamSocket, message: MessageView, wait: number): void {
    if (wait < 0 && this.#isLate(socket, message)) return
    this.counters[wait < 0 ? 'unexpected' : 'mismatched']++
    if (wait >= 0) this.attempts.repeatOverTcp(wait)
    else if (!socket.overTcp) this.waits.repeatGuessed(socket.number, message, this.#repeat)
    if (socket.guessed()) this.attempts.mistrust(socket)
  }

  /** Returns true if the message answers a probe, or a query that has ended. The pool then notes that the server works. */
  #isLate(socket: UpstreamSocket, { octets, offset, length }: MessageView): boolean {
    if (length < HEADER_OCTETS || (u16(octets, offset + 2) & FLAG_QR) === 0) return false
    const sentAt = this.waits.takeLate(socket.number, u16(octets, offset))
    if (sentAt < 0) return false
    this.counters.late++
    this.attempts.answeredLate(socket, isServfail(octets, offset), sentAt)
    return true
  }

  #fail(slot: number, reason: number): void {
    if (reason === FAILED_TIMEOUT) this.counters.timeouts++
    else this.counters.socketFailures++
    this.#coalescing.end(slot)
    this.links.end(this.attempts.onlyOf(slot))
    for (let asker = slot; asker >= 0;) {
      const next = this.#coalescing.followerOf(asker)
      this.#handed[asker] = 1
      this.#delivery.failure(asker, reason)
      asker = next
    }
  }
}

function isServfail(octets: Uint8Array, offset: number): boolean {
  return (u16(octets, offset + 2) & MASK_RCODE) === RCODE_SERVFAIL
}
