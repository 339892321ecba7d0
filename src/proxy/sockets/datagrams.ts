// The port between the packet path and the UDP sockets that carry it, with two implementations: Node's own
// sockets (udp-portable.ts, explicit mode) and the addon's (udp-native.ts, every mode).
//
// The addon works in turns: it fills the batch of queries, has it admitted, sends, reads answers, has them settled,
// sends. Node's sockets bring one datagram at a time. The component that gathers answers follows the turns.

import type { ListenerMode } from '../../config/config.ts'
import type { Family } from '../../core/ip.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { MessageView } from '../messages/message-view.ts'
import type { BatchCollector } from '../messages/collector.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'

export interface UdpListen {
  /** Unique among UDP listeners; `channels` of its messages. */
  readonly channel: number
  readonly family: Family
  /** 16 octets, IPv4 in the first 4; all zero: every address of the family. */
  readonly octets: Uint8Array
  /** 0 takes any free port. */
  readonly port: number
  readonly mode: ListenerMode
  /** A socket that is bound there already, perhaps in another network namespace; native only. */
  readonly descriptor?: number | undefined
}

export interface UdpCounters {
  readonly received: number
  readonly sent: number
  /** Source port 0, or a source or destination that is no single host (docs/spec/semantics 4: nothing). */
  readonly ignoredSources: number
  /** Longer than `limits.udp-message`. */
  readonly oversized: number
  /** Errors that the kernel reported on the socket. */
  readonly socketErrors: number
  /** Answers lost because the kernel took no more. */
  readonly sendsDropped: number
  /** Queries lost because the socket's buffer was full; 0 where the socket doesn't say. */
  readonly kernelDrops: number
}

export interface UdpListener {
  readonly channel: number
  readonly family: Family
  /** The port bound. */
  readonly port: number
  readonly counters: UdpCounters
  /** The socket, for the successor; the listener keeps it. Undefined where it is Node's. */
  readonly descriptor: number | undefined
  /** Off: what comes stays in the kernel, as long as it has room. Node's sockets read on. */
  reading(on: boolean): void
  /** Sends a copy, with `id` as its first octets, to the client of a row, from the server that it asked. */
  send(clients: ClientColumns, row: number, message: MessageView, id: number): void
  stop(): void
}

/** The user of a connected socket. */
export interface DatagramOwner {
  /** Octets source[offset, offset + length) came; they are valid during the call. */
  received(source: Uint8Array, offset: number, length: number): void
  /** The kernel reported an error, e.g. ECONNREFUSED: the peer, or the way to it, is gone. */
  fault(code: string): void
  /** Datagrams that `send` took were not sent for want of room. */
  dropped(count: number): void
}

export interface ConnectedSocket {
  /** Datagrams lost because the socket's buffer was full. */
  readonly kernelDrops: number
  /** Sends a copy with `id` as its first two octets; false when it can't. */
  send(octets: Uint8Array, offset: number, length: number, id: number): boolean
  close(): void
}

/** Gathers the answers of a turn. Calls come as `hold`, any number of `deliver`, `release`. */
export interface TurnFollower {
  /** A turn begins: `deliver` will be called, and octets of `lasting` hold until then. */
  hold(lasting: Uint8Array): void
  deliver(): void
  /** The turn ends, and delivers. */
  release(): void
}

export interface Datagrams {
  readonly native: boolean
  /** Another number where a new choice of socket is due: with each call, or with each run of sends that leaves together. */
  readonly turn: number
  /** Queries go into the batch of this collector. Before `listen`. */
  fill(collector: BatchCollector): void
  /** Answers are gathered there, and belong to queries of that table. Before `connect`. */
  follow(follower: TurnFollower, inFlight: InFlightTable): void
  /** Throws UnavailableError with the remedy when that listener can't be had. */
  listen(options: UdpListen): UdpListener
  /** A socket bound to `port` that speaks with one server; the system's error code when that fails. */
  connect(server: ServerAddress, port: number, owner: DatagramOwner): ConnectedSocket | string
  /** Closes everything at once. */
  stop(): void
}
