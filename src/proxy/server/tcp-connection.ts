// One client's TCP connection: what was read and not yet framed, what waits to be written, and how many of
// its queries are unanswered. It says when it is idle, when it must not be read from and when it can be closed;
// the server decides. Several queries may be open at once and answers leave in the order they come
// (RFC 7766 6.2.1.1, 7).

import { formatAddress } from '../../core/ip.ts'
import { FrameReader } from '../../dns/framing.ts'
import type { PeerAddress } from '../messages/address-book.ts'
import type { HandedConnection } from '../handed.ts'
import type { MessageBatch } from '../messages/batch.ts'
import type { MessageView } from '../messages/message-view.ts'
import type { Arrival, Stream, StreamOwner } from '../sockets/streams.ts'

/** Unsent octets from which on nothing more is read: the client must take answers first. */
const READ_PAUSE_OCTETS = 64 * 1024
/** Unsent octets at which the client counts as one that doesn't read: 16 of the longest answers. */
const UNSENT_MAX_OCTETS = 1024 * 1024

const NEVER = -1

/** What a connection tells its server. */
export interface ConnectionHost {
  now(): number
  /** Octets came and lie in the connection's reader. */
  readable(connection: TcpConnection): void
  /** The client takes no further queries to us. */
  halfClosed(connection: TcpConnection): void
  /** The client took answers. */
  writable(connection: TcpConnection): void
  gone(connection: TcpConnection, fault: boolean): void
}

export class TcpConnection implements StreamOwner {
  readonly number: number
  readonly peer: PeerAddress
  readonly port: number
  readonly interfaceIndex: number
  readonly reader = new FrameReader()
  /** Queries handed to the pipeline and not answered. */
  inFlight = 0
  /** When the last whole message came (or the connection, before the first). */
  lastMessageAt: number
  /** Since when a message has been incomplete; -1 when none is. */
  partialSince = NEVER
  /** A whole message has come. */
  hasAsked = false
  /** The client sent FIN: it gets its answers, then the connection is closed. */
  halfClosed = false
  /** Reading has stopped because of a bound; whole messages may lie in `reader`. */
  paused = false
  /** In the server's list of connections to flush. */
  dirty = false
  /** In the server's list of paused connections to look at again. */
  waking = false
  readonly #stream: Stream
  readonly #host: ConnectionHost
  readonly #asked: Uint8Array | undefined
  readonly #askedPort: number
  /** When the kernel last took octets that waited, or the oldest waiting write began. */
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

  /** The client takes its answers too slowly to be asked for more queries. */
  get congested(): boolean {
    return this.#stream.unsent >= READ_PAUSE_OCTETS
  }

  /** Whether unsent octets are over their bound. */
  get overfull(): boolean {
    return this.#stream.unsent > UNSENT_MAX_OCTETS
  }

  /** How long, in milliseconds, the kernel has taken nothing of what waits; 0 when nothing waits. */
  stalledFor(now: number): number {
    return this.#stream.waiting === 0 ? 0 : now - this.#progressAt
  }

  /** Whether the client has sent FIN and has been given everything. */
  get finished(): boolean {
    return this.halfClosed && this.inFlight === 0 && !this.paused
  }

  /** Whether the client has all its answers and has asked once, or had `quietMs` to ask. */
  isOver(now: number, quietMs: number): boolean {
    if (!this.idle || this.reader.pending > 0) return false
    return this.hasAsked || now - this.lastMessageAt >= quietMs
  }

  /** Adds the message that `reader` found to the batch, which must not be full; `view` is reused. */
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

  /** The connection as it stands, for the successor; undefined where it can't be handed over. Nothing is gathered. */
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

  /** Gives the connection up; its client notices nothing. */
  letGo(): void {
    this.dirty = false
    this.#stream.letGo()
  }

  /** Goes on where another daemon stopped. Reading begins with `resume`. */
  takeOn({ inFlight, halfClosed, hasAsked, unread }: HandedConnection): void {
    this.inFlight = inFlight
    this.halfClosed = halfClosed
    this.hasAsked = hasAsked
    this.paused = true
    this.reader.push(unread)
    this.reader.hold()
  }

  /** Gathers a frame; `flush` sends it. */
  queue(octets: Uint8Array, offset: number, length: number, id: number): void {
    this.#stream.queue(octets, offset, length, id)
  }

  flush(): void {
    this.dirty = false
    if (this.#stream.waiting === 0) this.#progressAt = this.#host.now()
    this.#stream.flush()
  }

  /** Stops reading; what came and was not taken from `reader` is kept. */
  pause(): void {
    this.paused = true
    this.#stream.pause()
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    this.#stream.resume()
  }

  /** Sends what waits, then closes; true when it is closed now. */
  end(): boolean {
    this.dirty = false
    return this.#stream.finish()
  }

  /** Closes at once. */
  destroy(): void {
    this.#stream.destroy()
  }

  /** Called after the last whole message was taken from `reader`: does a part of the next lie in it? */
  notePartial(now: number): void {
    if (this.reader.pending === 0) this.partialSince = NEVER
    else if (this.partialSince === NEVER) this.partialSince = now
  }
}

/** A connection that another daemon accepted, as if it came in now. */
export function arrivalOf(handed: HandedConnection): Arrival {
  const { family, peer, peerPort, interfaceIndex, asked, askedPort } = handed
  const from = { family, octets: peer, text: formatAddress(family, peer), unicast: true }
  return { peer: from, peerPort, interfaceIndex, asked, askedPort }
}

/** How long a connection may wait, in milliseconds. */
interface TcpTimeouts {
  readonly idleTimeout: number
  readonly messageTimeout: number
}

/** Which bound of time a connection has passed, as the counter of it. */
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
