// One client's TCP connection: what was read and not yet framed, what waits to be written, and how many of
// its queries are unanswered. It says when it is idle, when it must not be read from and when it can be closed;
// the server decides. Several queries may be open at once and answers leave in the order they come
// (RFC 7766 6.2.1.1, 7).

import type { Socket } from 'node:net'
import { FrameReader } from '../dns/framing.ts'
import type { PeerAddress } from './address-book.ts'
import { FrameWriter } from './frame-writer.ts'

/** Unsent octets from which on nothing more is read: the client must take answers first. */
const READ_PAUSE_OCTETS = 64 * 1024
/** Unsent octets at which the client counts as one that doesn't read: 16 of the longest answers. */
const UNSENT_MAX_OCTETS = 1024 * 1024

const NEVER = -1

export class TcpConnection {
  readonly number: number
  readonly peer: PeerAddress
  readonly port: number
  readonly reader = new FrameReader()
  /** Queries handed to the pipeline and not answered. */
  inFlight = 0
  /** When the last whole message came (or the connection, before the first). */
  lastMessageAt: number
  /** Since when a message has been incomplete; -1 when none is. */
  partialSince = NEVER
  /** The client sent FIN: it gets its answers, then the connection is closed. */
  halfClosed = false
  /** Reading has stopped because of a bound; whole messages may lie in `reader`. */
  paused = false
  /** In the server's list of connections to flush. */
  dirty = false
  /** In the server's list of paused connections to look at again. */
  waking = false
  readonly #socket: Socket
  readonly #writer = new FrameWriter()
  readonly #clockNow: () => number
  readonly #written: () => void
  /** When the kernel last took everything of a write, or the oldest waiting write began. */
  #progressAt: number

  constructor(
    number: number,
    socket: Socket,
    peer: PeerAddress,
    port: number,
    clockNow: () => number,
  ) {
    this.number = number
    this.#socket = socket
    this.peer = peer
    this.port = port
    this.#clockNow = clockNow
    this.lastMessageAt = clockNow()
    this.#progressAt = this.lastMessageAt
    this.#written = () => {
      this.#progressAt = clockNow()
    }
  }

  /** The client's address, for the per-client bound. */
  get client(): string {
    return this.peer.text
  }

  /** Octets of answers that the kernel hasn't taken. */
  get unsent(): number {
    return this.#writer.pending + this.#socket.writableLength
  }

  get idle(): boolean {
    return this.inFlight === 0 && !this.paused && this.unsent === 0
  }

  /** The client takes its answers too slowly to be asked for more queries. */
  get congested(): boolean {
    return this.unsent >= READ_PAUSE_OCTETS
  }

  /** Whether unsent octets are over their bound. */
  get overfull(): boolean {
    return this.unsent > UNSENT_MAX_OCTETS
  }

  /** How long, in milliseconds, the kernel has taken nothing of what waits; 0 when nothing waits. */
  stalledFor(now: number): number {
    return this.#socket.writableLength === 0 ? 0 : now - this.#progressAt
  }

  /** Whether the client has sent FIN and has been given everything. */
  get finished(): boolean {
    return this.halfClosed && this.inFlight === 0 && !this.paused
  }

  /** Gathers a frame; `flush` sends it. */
  queue(octets: Uint8Array, offset: number, length: number, id: number): void {
    this.#writer.add(octets, offset, length, id)
  }

  flush(): void {
    this.dirty = false
    const octets = this.#writer.take()
    if (octets === undefined) return
    if (this.#socket.writableLength === 0) this.#progressAt = this.#clockNow()
    this.#socket.write(octets, this.#written)
  }

  pause(): void {
    this.paused = true
    this.#socket.pause()
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    this.#socket.resume()
  }

  /** Sends what waits, then FIN. */
  end(): void {
    this.flush()
    this.#socket.end()
  }

  /** Closes at once. */
  destroy(): void {
    this.#socket.destroy()
  }

  /** Called after the last whole message was taken from `reader`: does a part of the next lie in it? */
  notePartial(now: number): void {
    if (this.reader.pending === 0) this.partialSince = NEVER
    else if (this.partialSince === NEVER) this.partialSince = now
  }
}
