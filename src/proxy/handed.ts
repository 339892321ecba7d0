// What one daemon hands to the next: its listening sockets, its clients' connections as they stand, and queries, with
// what became of them once that is known. Descriptors in here belong to the holder of the object.

import type { ListenerMode } from '../config/config.ts'
import type { Family } from '../core/ip.ts'

export interface HandedListener {
  readonly family: Family
  /** 16 octets, IPv4 in the first 4. */
  readonly octets: Uint8Array
  readonly port: number
  readonly mode: ListenerMode
  readonly udp: number
  readonly tcp: number
}

export interface HandedConnection {
  /** By which queries name it. */
  readonly number: number
  readonly descriptor: number
  readonly family: Family
  readonly peer: Uint8Array
  readonly peerPort: number
  readonly interfaceIndex: number
  /** 16 octets; with port 0: not known. */
  readonly asked: Uint8Array
  readonly askedPort: number
  /** Queries that were taken on and not answered. */
  readonly inFlight: number
  readonly halfClosed: boolean
  readonly hasAsked: boolean
  /** Octets that came and belong to no query taken on. */
  readonly unread: Uint8Array
  /** Octets of answers that the client has not taken. */
  readonly unsent: Uint8Array
}

/** `asked`: nothing became of it yet. The others as in FailureBatch. */
export type Fate = 'asked' | 'answered' | 'timeout' | 'socket'

/** A query of a client. Read and written by columns.ts of its batch; here only its octets go along. */
export interface HandedQuery {
  readonly family: Family
  readonly address: Uint8Array
  readonly port: number
  readonly transport: number
  /** Index of the listener, or number of the connection. */
  readonly channel: number
  readonly interfaceIndex: number
  readonly asked: Uint8Array
  readonly askedPort: number
  readonly query: Uint8Array
  readonly fate: Fate
  readonly overTcp: boolean
  /** Empty unless it was answered. */
  readonly answer: Uint8Array
}

export interface HandedSockets {
  readonly listeners: readonly HandedListener[]
  readonly connections: readonly HandedConnection[]
}
