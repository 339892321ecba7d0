// TcpConnection is one TCP connection of a client. It holds the octets of incomplete messages, the octets that wait to be written,
// and the number of unanswered queries. It tells when it is idle, when it must not be read, and when it can be closed; TcpServer
// decides. A client can have several queries in flight, and gets the answers in the order in which they become ready
// (RFC 7766 6.2.1.1, 7).

import { formatAddress } from '../../core/ip.ts'
import { FrameReader } from '../../dns/framing.ts'
import type { PeerAddress } from '../messages/address-book.ts'
import type { HandedConnection } from '../handed.ts'
import type { MessageBatch } from '../messages/batch.ts'
import type { MessageView } from '../../dns/message-view.ts'
import type { Stream, StreamOwner } from '../sockets/stream.ts'
import type { Arrival } from '../sockets/streams.ts'

/** With this many unsent octets or more, the connection is not read: the client must read answers first. */
const READ_PAUSE_OCTETS = 64 * 1024
/** With more unsent octets than this, the connection is closed: 16 answers of the longest size. */
const UNSENT_MAX_OCTETS = 1024 * 1024

const NEVER = -1

/** What a connection tells its server. */
export interface ConnectionHost {
  now(): number
  /** Octets arrived, and are in the connection's reader. */
  readable(connection: TcpConnection): void
  /** The client sent FIN: no further query arrives. */
  halfClosed(connection: TcpConnection): void
  /** The socket accepted octets of answers that waited. */
  writable(connection: TcpConnection): void
  gone(connection: TcpConnection, fault: boolean): void
}

export class TcpConnection implements StreamOwner {
  readonly number: number
  readonly peer: PeerAddress
  readonly port: number
  readonly interfaceIndex: number
  readonly reader = new FrameReader()
  /** The number of queries that the pipeline has received and not answered. */
  inFlight = 0
  /** When the last whole message arrived; before the first message, when the connection was accepted. */
  lastMessageAt: number
  /** Since when a message has been incomplete; -1 if no message is incomplete. */
  partialSince = NEVER
  /** True after a whole message has arrived. */
  hasAsked = false
  /** True after the client sent FIN. The client still gets its answers, then the connection is closed. */
  halfClosed = false
  /** True while reading is stopped because of a bound. `reader` can then contain whole messages. */
  paused = false
  /** True while the connection is in the server's list of connections to flush. */
  dirty = false
  /** True while the connection is in the server's list of paused connections to check again. */
  waking = false
  readonly #stream: Stream
  readonly #host: ConnectionHost
  readonly #asked: Uint8Array | undefined
  readonly #askedPort: number
  /** When the kernel last accepted waiting octets; before that, when the oldest waiting write began. */
  #progressAt: number

  constructor(number: number, stream: Stream, arrival: Arrival, host: ConnectionHost) {
    this.number = number
    this.#stream = stream
    this.#host = host
    this.peer = arrival.peer
    this.port = arrival.peerPort
    this.interfaceIndex = arrival.interfaceIndex
    this.#askedPort = arrival.askedPort
    this.#asked = arrival.askedPort === 0 ? undefined : arrival.asked.slice(0, 16)
    this.lastMessageAt = host.now()
    this.#progressAt = this.lastMessageAt
  }

  /** The client's address, for the per-client bound. */
  get client(): string {
    return this.peer.text
  }

  get idle(): boolean {
    return this.inFlight === 0 && !this.paused && this.#stream.unsent === 0
  }

  /** True if the client reads its answers too slowly. Its next queries are then not read. */
  get congested(): boolean {
    return this.#stream.unsent >= READ_PAUSE_OCTETS
  }

  /** True if there are more unsent octets than UNSENT_MAX_OCTETS. */
  get overfull(): boolean {
    return this.#stream.unsent > UNSENT_MAX_OCTETS
  }

  /** Returns for how many milliseconds the kernel has accepted none of the waiting octets; 0 if no octets wait. */
  stalledFor(now: number): number {
    return this.#stream.waiting === 0 ? 0 : now - this.#progressAt
  }

  /** True if the client has sent FIN and all its queries are answered. */
  get finished(): boolean {
    return this.halfClosed && this.inFlight === 0 && !this.paused
  }

  /** Returns true if the client has all its answers, and has asked at least once or had `quietMs` milliseconds to ask. */
  isOver(now: number, quietMs: number): boolean {
    if (!this.idle || this.reader.pending > 0) return false
    return this.hasAsked || now - this.lastMessageAt >= quietMs
  }

  /** Adds the message that `reader` found to the batch. The batch must have room. `view` is overwritten. */
  addTo(batch: MessageBatch, view: MessageView): void {
    const { peer, reader, port, number } = this
    const row = batch.count
    const message = view.set(reader.buffer, reader.offset, reader.length)
    batch.addTcp(number, peer.family, peer.octets, port, message)
    batch.interfaces[row] = this.interfaceIndex
    if (this.#asked !== undefined) {
      batch.askedPorts[row] = this.#askedPort
      for (let i = 0; i < 16; i++) batch.askedAddresses[row * 16 + i] = this.#asked[i]!
    }
  }

  received(source: Uint8Array, offset: number, length: number): void {
    this.reader.push(source, offset, offset + length)
    this.#host.readable(this)
  }

  ended(): void {
    this.halfClosed = true
    this.#host.halfClosed(this)
  }

  taken(): void {
    this.#progressAt = this.#host.now()
    this.#host.writable(this)
  }

  closed(fault: boolean): void {
    this.#host.gone(this, fault)
  }

  /** Returns the connection for the successor, or undefined if it has no descriptor. Call `flush` before. */
  handOut(): HandedConnection | undefined {
    const { descriptor } = this.#stream
    if (descriptor === undefined) return undefined
    const { number, peer, port, interfaceIndex, inFlight, halfClosed, hasAsked } = this
    return {
      number,
      descriptor,
      family: peer.family,
      peer: peer.octets.slice(0, 16),
      peerPort: port,
      interfaceIndex,
      asked: this.#asked?.slice() ?? new Uint8Array(16),
      askedPort: this.#askedPort,
      inFlight,
      halfClosed,
      hasAsked,
      unread: this.reader.rest(),
      unsent: this.#stream.unsentOctets(),
    }
  }

  /** Gives the connection up without closing it for the client. */
  letGo(): void {
    this.dirty = false
    this.#stream.letGo()
  }

  /** Continues a connection of another daemon. Reading begins with `resume`. */
  takeOn({ inFlight, halfClosed, hasAsked, unread }: HandedConnection): void {
    this.inFlight = inFlight
    this.halfClosed = halfClosed
    this.hasAsked = hasAsked
    this.paused = true
    this.reader.push(unread)
    this.reader.hold()
  }

  /** Adds a frame to the octets that `flush` sends. */
  queue(octets: Uint8Array, offset: number, length: number, id: number): void {
    this.#stream.queue(octets, offset, length, id)
  }

  flush(): void {
    this.dirty = false
    if (this.#stream.waiting === 0) this.#progressAt = this.#host.now()
    this.#stream.flush()
  }

  /** Stops reading. `reader` keeps the octets that arrived and were not read from it. */
  pause(): void {
    this.paused = true
    this.#stream.pause()
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    this.#stream.resume()
  }

  /** Sends the waiting octets, then closes the connection. Returns true if the connection is closed already. */
  end(): boolean {
    this.dirty = false
    return this.#stream.finish()
  }

  /** Closes the connection at once. */
  destroy(): void {
    this.#stream.destroy()
  }

  /** Notes if `reader` contains a part of a message. Call it after the last whole message was read from `reader`. */
  notePartial(now: number): void {
    if (this.reader.pending === 0) this.partialSince = NEVER
    else if (this.partialSince === NEVER) this.partialSince = now
  }
}

/** Converts a connection that another daemon accepted to the form of a new connection. */
export function arrivalOf(handed: HandedConnection): Arrival {
  const { family, peer, peerPort, interfaceIndex, asked, askedPort } = handed
  const from = { family, octets: peer, text: formatAddress(family, peer) }
  return { peer: from, peerPort, interfaceIndex, asked, askedPort }
}

/** The timeouts of a connection, in milliseconds. */
interface TcpTimeouts {
  readonly idleTimeout: number
  readonly messageTimeout: number
}

/** Returns the counter of the timeout that a connection has exceeded, or undefined. */
export function whyClose(
  connection: TcpConnection,
  now: number,
  { idleTimeout, messageTimeout }: TcpTimeouts,
): 'closedSlowReader' | 'closedIncomplete' | 'closedIdle' | undefined {
  const { partialSince, lastMessageAt, idle } = connection
  if (connection.stalledFor(now) > messageTimeout) return 'closedSlowReader'
  if (partialSince >= 0 && now - partialSince > messageTimeout) return 'closedIncomplete'
  return idle && now - lastMessageAt > idleTimeout ? 'closedIdle' : undefined
}
