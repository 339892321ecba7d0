// Forwards queries to the configured servers and hands back what they answer, in batches. A query that came
// over TCP goes over TCP (RFC 5625 4.4.1). A message is an answer only if its socket, id and question match
// (docs/spec/semantics 4; a connected socket vouches for the addresses); anything else is dropped and counted, the wait goes on, and
// the query is asked once more over TCP [F1, A4, A5]. What comes after a query has ended is dropped [A14].
//
// The composition of in-flight table (who asked what), coalescing (who asked the same), waits (which socket waits
// for which id), attempts (when to ask whom), the servers' health and sockets. Nothing is allocated per query.

import type { Clock } from '../../core/clock.ts'
import type { EndpointId, Generation } from '../../core/ids.ts'
import { invariant } from '../../core/invariant.ts'
import { FLAG_QR, MASK_RCODE, RCODE_SERVFAIL } from '../../dns/codes.ts'
import type { QueryView } from '../../dns/query.ts'
import { HEADER_OCTETS, u16 } from '../../dns/wire.ts'
import { FAILED_TIMEOUT, type AnswerBatch, type FailureBatch } from '../messages/answer-batch.ts'
import type { AskedServers } from './asked-servers.ts'
import { Attempts } from './attempts.ts'
import type { MessageBatch } from '../messages/batch.ts'
import { Coalescing } from './coalescing.ts'
import { Delivery } from '../messages/delivery.ts'
import { MessageView } from '../messages/message-view.ts'
import { CLIENT_FULL, InFlightTable, TABLE_FULL } from '../messages/in-flight.ts'
import { Probes } from './probes.ts'
import { RandomPool, type RandomSource } from '../random.ts'
import { NO_LINK, ServerLinks, type UdpSocketOptions } from './server-links.ts'
import { ServerPool, type ServerAddress } from './server-pool.ts'
import { SlotView } from '../messages/slot-view.ts'
import type { Datagrams } from '../sockets/datagrams.ts'
import type { Streams } from '../sockets/streams.ts'
import { PortableStreams } from '../sockets/tcp-portable.ts'
import { SocketNumbers, type UpstreamEvents, type UpstreamSocket } from './upstream-socket.ts'
import { PortableDatagrams } from '../sockets/udp-portable.ts'
import type { UpstreamTcp } from './upstream-tcp.ts'
import type { UpstreamUdp } from './upstream-udp.ts'
import { Waits } from './waits.ts'

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
  /** Where clients choose the server: which one each asked. */
  readonly asked?: AskedServers | undefined
  /** Accepted answers; each slot is released by the receiver once its client is answered. */
  readonly onAnswers: (answers: AnswerBatch) => void
  /** Queries that ended without an answer; likewise. */
  readonly onFailures: (failures: FailureBatch) => void
  readonly limits?: UpstreamLimits
  /** What carries TCP; default Node's sockets. */
  readonly streams?: Streams
  /** What carries UDP; likewise. */
  readonly datagrams?: Datagrams
  readonly udp?: UdpSocketOptions
}

/** `full` and `client-full`: a bound forbids it, and the client gets SERVFAIL (docs/spec/semantics 6). */
export type ForwardResult = 'forwarded' | 'full' | 'client-full'

/** `. NS IN`, recursion desired (RFC 1035 4.1); the id is the sender's. */
const ROOT_NS_QUERY = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1)

export class Upstream {
  readonly inFlight: InFlightTable
  readonly pool: ServerPool
  /** By server, those of the pool first; their counters are theirs. */
  readonly udp: readonly UpstreamUdp[]
  readonly tcp: readonly UpstreamTcp[]
  readonly links: ServerLinks
  readonly waits: Waits
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
    /** Answers to attempts that no query waits for any more, and to probes. */
    late: 0,
    /** Messages with the id of a wait that are no reply to its question. */
    mismatched: 0,
  }
  readonly #coalescing: Coalescing
  readonly #numbers = new SocketNumbers()
  readonly #delivery: Delivery
  readonly #view = new SlotView()
  readonly #message = new MessageView()
  /** 1 once the slot was handed to the pipeline. */
  readonly #handed: Uint8Array
  readonly #repeat = (wait: number): boolean => this.attempts.repeatOverTcp(wait)

  constructor(options: UpstreamOptions) {
    const { clock, servers, onAnswers, onFailures, limits = DEFAULT_UPSTREAM_LIMITS } = options
    invariant(servers.length > 0, 'there is a server to ask')
    const random = new RandomPool(options.random)
    const capacity = limits.inFlight
    this.inFlight = new InFlightTable({ capacity, perClient: limits.inFlightPerClient })
    this.#handed = new Uint8Array(capacity)
    this.#coalescing = new Coalescing(this.inFlight, options.asked !== undefined)
    this.pool = new ServerPool(servers)
    const { streams = new PortableStreams(), datagrams = new PortableDatagrams() } = options
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
      // One wait more than attempts: the repetition over TCP after a mismatch.
      width: limits.attempts + 1,
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
   * Takes a slot for a query whose answer or failure is known already: no server is asked, and the slot is released as
   * after `forward`. TABLE_FULL or CLIENT_FULL where a bound forbids it.
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

  /** Frees a slot that came with an answer or a failure, once its client has been answered. */
  release(slot: number): void {
    invariant(this.#handed[slot] === 1, 'a slot is released after its query has ended', slot)
    this.#handed[slot] = 0
    this.inFlight.release(slot)
  }

  /** Closes all sockets at once. Queries in flight end without a call. */
  stop(): void {
    this.attempts.stop()
    this.probes.stop()
    this.links.stop()
  }

  #events(): UpstreamEvents {
    return {
      onMessage: (socket, octets, offset, length) => this.#receive(socket, octets, offset, length),
      onFault: (socket) => this.attempts.fault(socket),
      isWaiting: (number) => this.waits.countOf(number) > 0,
    }
  }

  #receive(socket: UpstreamSocket, octets: Uint8Array, offset: number, length: number): void {
    const wait = length < 2 ? -1 : this.waits.find(socket.number, u16(octets, offset))
    if (wait < 0) {
      if (this.#isLate(socket, octets, offset, length)) this.counters.late++
      else this.counters.unexpected++
      // A guess may hit the id of a late one.
      if (!socket.overTcp) {
        this.waits.repeatGuessed(socket.number, octets, offset, length, this.#repeat)
      }
      return
    }
    const slot = this.waits.slotOf(wait)
    if (!this.#view.isReply(this.inFlight, slot, octets, offset, length)) {
      this.counters.mismatched++
      this.attempts.repeatOverTcp(wait)
      return
    }
    this.attempts.answered(wait, socket.server, isServfail(octets, offset))
    this.counters.answers++
    const chosen = this.attempts.onlyOf(slot)
    this.#coalescing.end(slot)
    const message = this.#message.set(octets, offset, length)
    for (let asker = slot; asker >= 0;) {
      const next = this.#coalescing.followerOf(asker)
      this.#handed[asker] = 1
      this.#delivery.answer(asker, socket.server, socket.overTcp, message)
      asker = next
    }
    this.links.end(chosen)
  }

  /** Whether this is an answer that no query waits for any more, or a probe's; its server lives. */
  #isLate(socket: UpstreamSocket, octets: Uint8Array, offset: number, length: number): boolean {
    if (length < HEADER_OCTETS || (u16(octets, offset + 2) & FLAG_QR) === 0) return false
    const sentAt = this.waits.late.take(socket.number, u16(octets, offset))
    if (sentAt < 0) return false
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
