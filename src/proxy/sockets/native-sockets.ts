// NativeListener and NativeConnected are UDP sockets of the addon: a listener, and a socket that is connected to a server. A send
// only adds a row to the engine's next flush. The addon counts, and the counts are read on request.

import type { Family } from '../../core/ip.ts'
import { formatAddress } from '../../core/ip.ts'
import { errnoName } from '../../native/native.ts'
import {
  HANDLE_PLACE,
  REPORT_WORDS,
  SPEC_CHANNEL,
  SPEC_DESCRIPTOR,
  SPEC_FAMILY,
  SPEC_FLAGS,
  SPEC_MARK,
  SPEC_PEER_PORT,
  SPEC_PORT,
  SPEC_RECEIVE_BUFFER,
  SPEC_SEND_BUFFER,
  STAT_DROPPED,
  STAT_ERRORS,
  STAT_IGNORED,
  STAT_KERNEL_DROPS,
  STAT_OVERSIZED,
  STAT_RECEIVED,
  STAT_SENT,
  STAT_WORDS,
  UDP_LISTENER,
  UDP_TRANSPARENT,
  UDP_WANT_ASKED,
  UDP_WANT_ORIGINAL,
} from '../../native/udp/udp.ts'
import type { MessageView } from '../../dns/message-view.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type {
  ConnectedSocket,
  DatagramOwner,
  UdpCounters,
  UdpListen,
  UdpListener,
} from './datagrams.ts'
import { listenFault } from './listen-fault.ts'
import type { ReplySockets } from './reply-sockets.ts'
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

/** The part of NativeDatagrams that its sockets use. */
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

/** The requested receive buffer of a listener, in octets: 20,000 queries with their overhead. */
const RECEIVE_BUFFER = 8 * 1024 * 1024

export class NativeListener implements UdpListener {
  readonly channel: number
  readonly family: Family
  readonly port: number
  readonly #engine: SocketEngine
  readonly #handle: number
  /** True for mode tproxy: answers are sent from another socket, because this socket has another port than the client asked. */
  readonly #transparent: boolean
  readonly #stats = new Float64Array(STAT_WORDS)
  readonly #replies: ReplySockets
  #sentElsewhere = 0

  /** Binds. If that fails, throws UnavailableError, which names the remedy. */
  constructor(engine: SocketEngine, replies: ReplySockets, options: UdpListen) {
    const { channel, family, octets, port, mode, descriptor } = options
    this.#engine = engine
    this.#replies = replies
    this.channel = channel
    this.family = family
    this.#transparent = mode === 'tproxy'
    const flags = UDP_LISTENER | (this.#transparent ? TRANSPARENT : wantsAsked(octets))
    const spec = { family, flags, octets, port, channel, receiveBuffer: RECEIVE_BUFFER }
    this.#handle = engine.open({ ...spec, descriptor })
    if (this.#handle < 0) {
      throw listenFault('UDP', formatAddress(family, octets), port, errnoName(this.#handle), mode)
    }
    this.port = engine.portOf(this.#handle)
  }

  get counters(): UdpCounters {
    const stats = this.#stats
    this.#engine.readStats(this.#handle, stats)
    return {
      received: stats[STAT_RECEIVED]!,
      sent: stats[STAT_SENT]! + this.#sentElsewhere,
      ignoredSources: stats[STAT_IGNORED]!,
      oversized: stats[STAT_OVERSIZED]!,
      socketErrors: stats[STAT_ERRORS]!,
      sendsDropped: stats[STAT_DROPPED]!,
      kernelDrops: stats[STAT_KERNEL_DROPS]!,
    }
  }

  get descriptor(): number {
    return this.#engine.descriptorOf(this.#handle)
  }

  reading(on: boolean): void {
    this.#engine.reading(this.#handle, on)
  }

  send(clients: ClientColumns, row: number, message: MessageView, id: number): void {
    const { octets, offset, length } = message
    let handle = this.#handle
    if (this.#transparent) {
      handle = this.#replies.handleFor(this.family, clients.askedPorts[row]!)
      this.#sentElsewhere++
    }
    this.#engine.prepare(length)
    const { sends } = this.#engine
    sends.add(handle, octets, offset, length, id)
    sends.to(clients, row)
  }

  stop(): void {
    this.#engine.flush()
    this.#engine.readStats(this.#handle, this.#stats)
    this.#engine.close(this.#handle)
  }
}

const TRANSPARENT = UDP_TRANSPARENT | UDP_WANT_ORIGINAL

/** Returns the flag for a socket that listens on every address: its answers must come from the address that the client asked. */
function wantsAsked(octets: Uint8Array): number {
  return octets.some((octet) => octet !== 0) ? 0 : UDP_WANT_ASKED
}

export class NativeConnected implements ConnectedSocket {
  readonly handle: number
  readonly owner: DatagramOwner
  readonly #engine: SocketEngine
  readonly #stats = new Float64Array(STAT_WORDS)

  constructor(engine: SocketEngine, handle: number, owner: DatagramOwner) {
    this.#engine = engine
    this.handle = handle
    this.owner = owner
  }

  get kernelDrops(): number {
    this.#engine.readStats(this.handle, this.#stats)
    return this.#stats[STAT_KERNEL_DROPS]!
  }

  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    this.#engine.prepare(length)
    this.#engine.sends.add(this.handle, octets, offset, length, id)
    return true
  }

  close(): void {
    this.#engine.readStats(this.handle, this.#stats)
    this.#engine.close(this.handle)
  }
}

/** Error codes that mean a lack of room in the kernel, and not a failure of the peer or the route. */
const WANT_OF_ROOM = /^(?:EAGAIN|EWOULDBLOCK|ENOBUFS|ENOMEM|EMSGSIZE)$/

/** Reports the kernel's errors to the owners of the sockets. The index in `sockets` is `handle & HANDLE_PLACE`. */
export function reportErrors(
  reports: Int32Array,
  sockets: readonly (NativeConnected | undefined)[],
): void {
  for (let at = 0; at < reports.length; at += REPORT_WORDS) {
    const handle = reports[at]!
    const socket = sockets[handle & HANDLE_PLACE]
    if (socket?.handle !== handle) continue
    const code = errnoName(reports[at + 1]!)
    if (reports[at + 2]! > 0) socket.owner.dropped(reports[at + 2]!)
    if (!WANT_OF_ROOM.test(code)) socket.owner.fault(code)
  }
}
