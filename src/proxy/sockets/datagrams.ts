// Datagrams is the port for UDP sockets. It has two implementations: Node's sockets (udp-portable.ts, explicit mode only) and the
// native part's sockets (udp-native.ts, every mode).
//
// Native sockets work in turns. In a turn they fill the batch of queries, let the pipeline admit it, and send; then they read
// answers, let the pipeline settle them, and send. Node's sockets deliver one datagram at a time. TurnFollower gathers the
// answers. Each kind of socket calls it when a turn begins and ends.

import type { ListenerMode } from '../../config/config.ts'
import type { Family } from '../../core/ip.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { MessageView } from '../../dns/message-view.ts'
import type { BatchCollector } from '../messages/batch.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'

export interface UdpListen {
  /** The number of the listener, unique among UDP listeners. Its messages have it in `channels`. */
  readonly channel: number
  readonly family: Family
  /** 16 octets. An IPv4 address is in the first 4. Zeros mean every address of the family. */
  readonly octets: Uint8Array
  /** 0: the kernel chooses a free port. */
  readonly port: number
  readonly mode: ListenerMode
  /** A socket that is already bound to this address and port, possibly in another network namespace. Native sockets only. */
  readonly descriptor?: number | undefined
}

export interface UdpCounters {
  readonly received: number
  readonly sent: number
  /** Queries with source port 0, or with a source or destination that is not unicast. They get no answer (docs/spec/semantics 4). */
  readonly ignoredSources: number
  /** Queries that were longer than `limits.udp-message`. */
  readonly oversized: number
  /** Errors that the kernel reported on the socket. */
  readonly socketErrors: number
  /** Answers that were lost because the send buffer was full. */
  readonly sendsDropped: number
  /** Queries that were lost because the receive buffer was full; 0 if the socket does not report them. */
  readonly kernelDrops: number
}

export interface UdpListener {
  readonly channel: number
  readonly family: Family
  /** The bound port. */
  readonly port: number
  readonly counters: UdpCounters
  /** The socket's descriptor, for the successor. The listener keeps it. Undefined for a socket of Node. */
  readonly descriptor: number | undefined
  /** Turns reading on or off. While it is off, queries wait in the receive buffer. Node's sockets always read. */
  reading(on: boolean): void
  /** Sends a copy to the client of a row, with `id` as the first two octets. Its source is the server that the client asked. */
  send(clients: ClientColumns, row: number, message: MessageView, id: number): void
  stop(): void
}

/** The user of a connected socket. */
export interface DatagramOwner {
  /** The octets source[offset, offset + length) arrived. They are valid during the call. */
  received(source: Uint8Array, offset: number, length: number): void
  /** The kernel reported an error, such as ECONNREFUSED: the peer, or the route to the peer, does not work. */
  fault(code: string): void
  /** `count` datagrams for which `send` returned true were not sent, because there was no room. */
  dropped(count: number): void
}

export interface ConnectedSocket {
  /** Datagrams that were lost because the receive buffer was full. */
  readonly kernelDrops: number
  /** Sends a copy with `id` as the first two octets. Returns false on failure. */
  send(octets: Uint8Array, offset: number, length: number, id: number): boolean
  close(): void
}

/** Gathers the answers of a turn. In each turn, native sockets call `hold`, then `deliver` any number of times, then `release`. */
export interface TurnFollower {
  /** Begins a turn. Octets in `lasting` stay valid until the next `deliver`. */
  hold(lasting: Uint8Array): void
  deliver(): void
  /** Delivers, and ends the turn. */
  release(): void
}

export interface Datagrams {
  readonly native: boolean
  /** The upstream chooses a socket again when this number has changed: with Node's sockets at each read, natively after a flush. */
  readonly turn: number
  /** Sets the collector that receives queries. Call it before `listen`. */
  fill(collector: BatchCollector): void
  /** Sets the follower that gathers answers to queries in `inFlight`. Call it before `connect`. */
  follow(follower: TurnFollower, inFlight: InFlightTable): void
  /** Opens a listener. If that fails, throws UnavailableError, which names the remedy. */
  listen(options: UdpListen): UdpListener
  /** Returns a socket that is bound to `port` and connected to one server, or the system's error code. */
  connect(server: ServerAddress, port: number, owner: DatagramOwner): ConnectedSocket | string
  /** Closes all sockets at once. */
  stop(): void
}
