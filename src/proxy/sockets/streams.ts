// Streams is the port for TCP sockets. It has two implementations: Node's sockets (tcp-portable.ts, explicit mode only) and the
// native part's sockets (tcp-native.ts, every mode). A stream sends frames and receives octets. It reports events through the four
// methods of StreamOwner, so a connection needs no closures.
// A stream never calls its owner while the owner calls the stream, and never after `destroy` or `closed`.

import type { ListenerMode } from '../../config/config.ts'
import type { Family } from '../../core/ip.ts'
import type { PeerAddress } from '../messages/address-book.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'

export interface StreamListen {
  readonly family: Family
  /** 16 octets. An IPv4 address is in the first 4. Zeros mean every address of the family. */
  readonly octets: Uint8Array
  /** 0: the kernel chooses a free port. */
  readonly port: number
  readonly mode: ListenerMode
  /** A socket that is already bound to this address and port, possibly in another network namespace. Native sockets only. */
  readonly descriptor?: number | undefined
}

/** A new connection. It is valid during `accept`. */
export interface Arrival {
  readonly peer: PeerAddress
  readonly peerPort: number
  /** Index of the interface on which the connection arrived; 0 if it is not known. */
  readonly interfaceIndex: number
  /** Address of the server that the client asked, 16 octets. If `askedPort` is 0, the server is not known. */
  readonly asked: Uint8Array
  readonly askedPort: number
}

/** The user of a stream. */
export interface StreamOwner {
  /** The octets source[offset, offset + length) arrived. They are valid during the call. */
  received(source: Uint8Array, offset: number, length: number): void
  /** The peer sent FIN: no more octets arrive. */
  ended(): void
  /** The kernel accepted octets that had waited. */
  taken(): void
  /** The stream was closed by an error, by the peer, or after `finish`. `fault`: true if an error closed it. */
  closed(fault: boolean): void
}

export interface Stream {
  /** The number of octets that `flush` has sent and the kernel has not accepted yet. */
  readonly waiting: number
  /** `waiting`, plus the octets of frames that no `flush` has sent yet. */
  readonly unsent: number
  /** Copies a frame of `length` octets (1..65,535) for the next `flush`, with `id` as the first two octets. */
  queue(octets: Uint8Array, offset: number, length: number, id: number): void
  /** Sends the queued frames in one write, so length and message are always together (RFC 7766 8). */
  flush(): void
  /** Stops reading: the stream does not call `received` and `ended` until `resume`. */
  pause(): void
  resume(): void
  /** Sends unsent octets, then closes. Returns true if the stream is closed already; `closed` is not called in this case. */
  finish(): boolean
  /** Closes at once. If there are unsent octets, they are lost and the peer gets RST. */
  destroy(): void
  /** The connection's descriptor, for the successor. The stream keeps it. Undefined for a socket of Node. */
  readonly descriptor: number | undefined
  /** Returns a copy of the `waiting` octets, which the successor sends. Call it after `flush`. */
  unsentOctets(): Uint8Array
  /** Gives the connection up without an effect on the peer. The successor continues with its copy of the descriptor. */
  letGo(): void
}

export interface StreamAcceptor {
  /** Returns the owner of a new stream, or undefined to refuse it. */
  accept(stream: Stream, arrival: Arrival): StreamOwner | undefined
  /** A connection could not be accepted, for example because of EMFILE. The listener tries again. */
  acceptFault(code: string): void
}

export interface StreamListener {
  readonly port: number
  /** The socket's descriptor, for the successor. The listener keeps it. Undefined for a socket of Node. */
  readonly descriptor: number | undefined
  /** Turns accepting on or off. While it is off, new connections wait in the kernel. Node's listeners always accept. */
  accepting(on: boolean): void
  close(): void
}

export interface Streams {
  /** True if listeners of modes tproxy and redirect are possible. */
  readonly native: boolean
  /** Opens a listener. If that fails, rejects with UnavailableError, which names the remedy. */
  listen(options: StreamListen, acceptor: StreamAcceptor): Promise<StreamListener>
  /**
   * Continues a connection that another daemon accepted. First it sends `unsent`, the octets that the other daemon could not send.
   * Reading begins with `resume`. On failure, closes the connection and returns undefined.
   */
  adopt(
    descriptor: number,
    unsent: Uint8Array,
    arrival: Arrival,
    to: StreamAcceptor,
  ): Stream | undefined
  /** Begins to connect. The caller can queue frames at once. A failure is reported as `closed`. */
  connect(server: ServerAddress, owner: StreamOwner): Stream
}
