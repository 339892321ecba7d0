// Types of what the source of a take-over gives to its successor: listening sockets, connections of clients, and queries with
// their answers or failures, if known. Who holds an object of these types owns the descriptors in it, and must close them.

import type { ListenerMode } from '../config/config.ts'
import type { Family } from '../core/ip.ts'

export interface HandedListener {
  readonly family: Family
  /** 16 octets. An IPv4 address is in the first 4. */
  readonly octets: Uint8Array
  readonly port: number
  readonly mode: ListenerMode
  readonly udp: number
  readonly tcp: number
}

export interface HandedConnection {
  /** The number of the connection. Queries of the connection have this number as their channel. */
  readonly number: number
  readonly descriptor: number
  readonly family: Family
  readonly peer: Uint8Array
  readonly peerPort: number
  readonly interfaceIndex: number
  /** Address of the server that the client asked, 16 octets. If `askedPort` is 0, the address is not known. */
  readonly asked: Uint8Array
  readonly askedPort: number
  /** The number of queries that were read and not yet answered. */
  readonly inFlight: number
  readonly halfClosed: boolean
  readonly hasAsked: boolean
  /** Received octets of a query that is not complete yet. */
  readonly unread: Uint8Array
  /** Octets of answers that the socket has not accepted yet. */
  readonly unsent: Uint8Array
}

/** How a query ended. `asked`: the query was not forwarded. `socket`: the sockets of the upstream failed. */
export type Fate = 'asked' | 'answered' | 'timeout' | 'socket'

/** A query of a client, with its answer if it has one. */
export interface HandedQuery {
  readonly family: Family
  readonly address: Uint8Array
  readonly port: number
  readonly transport: number
  /** Index of the UDP listener, or number of the TCP connection. */
  readonly channel: number
  readonly interfaceIndex: number
  readonly asked: Uint8Array
  readonly askedPort: number
  readonly query: Uint8Array
  readonly fate: Fate
  readonly overTcp: boolean
  /** The answer as a DNS message; empty if `fate` is not `answered`. */
  readonly answer: Uint8Array
}

export interface HandedSockets {
  readonly listeners: readonly HandedListener[]
  readonly connections: readonly HandedConnection[]
}
