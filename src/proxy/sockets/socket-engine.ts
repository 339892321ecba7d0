// SocketEngine is the part of Datagrams that its sockets use: it opens sockets of the addon, and sends rows.

import type { Family } from '../../core/ip.ts'
import {
  SPEC_CHANNEL,
  SPEC_DESCRIPTOR,
  SPEC_FAMILY,
  SPEC_FLAGS,
  SPEC_MARK,
  SPEC_PEER_PORT,
  SPEC_PORT,
  SPEC_RECEIVE_BUFFER,
  SPEC_SEND_BUFFER,
} from '../../native/udp/udp.ts'
import type { SendRows } from './shared-memory.ts'

/** What the addon needs to open a socket. */
export interface SocketSpec {
  readonly family: Family
  /** UDP_* of native/udp/udp.ts. */
  readonly flags: number
  /** The local address, 16 octets. Zeros mean every address. */
  readonly octets: Uint8Array
  readonly port: number
  readonly peer?: Uint8Array
  readonly peerPort?: number
  /** The requested size of the receive buffer, in octets. */
  readonly receiveBuffer: number
  readonly channel?: number
  /** A socket that is already bound. */
  readonly descriptor?: number | undefined
}

/** Writes a spec as the words that the addon reads. Only sockets to servers get the mark. */
export function writeSpec(
  words: Int32Array,
  spec: SocketSpec,
  mark: number,
  sendBuffer: number,
): void {
  words[SPEC_FAMILY] = spec.family
  words[SPEC_FLAGS] = spec.flags
  words[SPEC_PORT] = spec.port
  words[SPEC_PEER_PORT] = spec.peerPort ?? 0
  words[SPEC_MARK] = spec.peerPort === undefined ? 0 : mark
  words[SPEC_RECEIVE_BUFFER] = spec.receiveBuffer
  words[SPEC_SEND_BUFFER] = sendBuffer
  words[SPEC_CHANNEL] = spec.channel ?? 0
  words[SPEC_DESCRIPTOR] = (spec.descriptor ?? -1) + 1
}

export interface SocketEngine {
  readonly sends: SendRows
  /** Opens a socket. Returns its handle, or a negative errno. */
  open(spec: SocketSpec): number
  close(handle: number): void
  portOf(handle: number): number
  /** Reads the counts of one socket (STAT_*). Returns false, and writes nothing, if the socket is closed. */
  readStats(handle: number, into: Float64Array): boolean
  descriptorOf(handle: number): number
  reading(handle: number, on: boolean): void
  /** Makes room for a row of `length` octets, and schedules the flush that sends it. */
  prepare(length: number): void
  /** Sends the rows that wait. */
  flush(): void
}
