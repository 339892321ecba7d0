// The port between DNS over TCP and the sockets that carry it, with two implementations: Node's own sockets
// (tcp-portable.ts, explicit mode) and the addon's (tcp-native.ts, every mode). A stream carries frames out and
// octets in, and reports what happens to its owner by four calls, so a connection needs no closures.
// Always: no call of an owner comes from inside a call of its stream, and none after `destroy` or `closed`.

import type { ListenerMode } from '../../config/config.ts'
import type { Family } from '../../core/ip.ts'
import type { PeerAddress } from '../messages/address-book.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'

export interface StreamListen {
  readonly family: Family
  /** 16 octets, IPv4 in the first 4; all zero: every address of the family. */
  readonly octets: Uint8Array
  /** 0 takes any free port. */
  readonly port: number
  readonly mode: ListenerMode
  /** A socket that is bound there already, perhaps in another network namespace; native only. */
  readonly descriptor?: number | undefined
}

/** What is known of a connection that came in; valid during `accept`. */
export interface Arrival {
  readonly peer: PeerAddress
  readonly peerPort: number
  /** Index of the interface it came in on; 0 where the kernel or the socket doesn't say. */
  readonly interfaceIndex: number
  /** The server that the client connected to, 16 octets; with `askedPort` 0: not known. */
  readonly asked: Uint8Array
  readonly askedPort: number
}

/** The user of a stream. */
export interface StreamOwner {
  /** Octets source[offset, offset + length) came; they are valid during the call. */
  received(source: Uint8Array, offset: number, length: number): void
  /** The peer sent FIN: no more octets come. */
  ended(): void
  /** The kernel took octets that had waited. */
  taken(): void
  /** The stream is closed, by an error, by the peer, or after `finish`. `fault`: it wasn't in order. */
  closed(fault: boolean): void
}

export interface Stream {
  /** Octets that the kernel was offered and has not taken. */
  readonly waiting: number
  /** Those, and frames that no `flush` has sent yet. */
  readonly unsent: number
  /** Gathers a frame of `length` octets (1..65,535) with its first two octets replaced by `id`; copied. */
  queue(octets: Uint8Array, offset: number, length: number, id: number): void
  /** Sends what is gathered in one write; length and message are never apart (RFC 7766 8). */
  flush(): void
  /** Calls of `received` and `ended` stop until `resume`. */
  pause(): void
  resume(): void
  /** Sends what is unsent, then closes; true when that was at once, and then `closed` isn't called. */
  finish(): boolean
  /** Closes at once; what is unsent is lost, and the peer gets RST when there is any. */
  destroy(): void
  /** The connection, for the successor; the stream keeps it. Undefined where it is Node's. */
  readonly descriptor: number | undefined
  /** What the kernel was offered and has not taken, copied; the successor sends it. After `flush`. */
  unsentOctets(): Uint8Array
  /** Gives the connection up: the successor, which has a copy, goes on with it, and the peer notices nothing. */
  letGo(): void
}

export interface StreamAcceptor {
  /** The owner of a new stream, or undefined to refuse it. */
  accept(stream: Stream, arrival: Arrival): StreamOwner | undefined
  /** A connection could not be taken, e.g. EMFILE; it is tried again. */
  acceptFault(code: string): void
}

export interface StreamListener {
  readonly port: number
  /** The socket, for the successor; the listener keeps it. Undefined where it is Node's. */
  readonly descriptor: number | undefined
  /** Off: connections wait in the kernel. Node's listeners go on. */
  accepting(on: boolean): void
  close(): void
}

export interface Streams {
  /** Whether listeners of modes tproxy and redirect can be had. */
  readonly native: boolean
  /** Rejects with UnavailableError and the remedy when that listener can't be had. */
  listen(options: StreamListen, acceptor: StreamAcceptor): Promise<StreamListener>
  /**
   * Goes on with a connection that another daemon accepted, after sending what that daemon could not; `resume` begins to read.
   * Undefined when it can't, and then it is closed.
   */
  adopt(
    descriptor: number,
    unsent: Uint8Array,
    arrival: Arrival,
    to: StreamAcceptor,
  ): Stream | undefined
  /** Begins to connect; frames may be queued at once. A fault comes as `closed`. */
  connect(server: ServerAddress, owner: StreamOwner): Stream
}
