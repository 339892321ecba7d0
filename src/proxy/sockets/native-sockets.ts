// Sockets of the addon: a listener, and one that speaks with a server. Both only put rows into the engine's next
// flush; counts are kept in C and read on request.

import type { Family } from '../../core/ip.ts'
import { formatAddress } from '../../core/ip.ts'
import { errnoName } from '../../native/native.ts'
import {
  HANDLE_PLACE,
  NEWS_WORDS,
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
import type { MessageView } from '../messages/message-view.ts'
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
import type { SendRows } from '../messages/send-rows.ts'

/** A socket as the addon is asked for it. */
export interface SocketSpec {
  readonly family: Family
  /** UDP_* of native/udp/udp.ts. */
  readonly flags: number
  /** 16 octets each; all zero is every address. */
  readonly octets: Uint8Array
  readonly port: number
  readonly peer?: Uint8Array
  readonly peerPort?: number
  /** Octets asked of the kernel. */
  readonly receiveBuffer: number
  readonly channel?: number
  /** A socket that is bound already. */
  readonly descriptor?: number | undefined
}

/** A spec as the words that the addon reads; only what we begin carries the mark. */
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

/** What sockets need of the engine that has them. */
export interface SocketEngine {
  readonly sends: SendRows
  /** A handle, or a negative errno. */
  open(spec: SocketSpec): number
  close(handle: number): void
  portOf(handle: number): number
  /** Counts of one socket (STAT_*); false, and nothing is written, when it has closed. */
  readStats(handle: number, into: Float64Array): boolean
  descriptorOf(handle: number): number
  reading(handle: number, on: boolean): void
  /** Makes room for a row of so many octets, and sees to it that it leaves. */
  prepare(length: number): void
  /** Sends what waits. */
  flush(): void
}

/** Octets asked of the kernel: 20,000 queries with their overhead. */
const RECEIVE_BUFFER = 8 * 1024 * 1024

export class NativeListener implements UdpListener {
  readonly channel: number
  readonly family: Family
  readonly port: number
  readonly #engine: SocketEngine
  readonly #handle: number
  /** Answers leave by another socket: this one has the wrong port. */
  readonly #transparent: boolean
  readonly #stats = new Float64Array(STAT_WORDS)
  readonly #replies: ReplySockets
  #sentElsewhere = 0

  /** Binds; throws UnavailableError with the remedy when that's not possible. */
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

/** A socket on every address answers from the one that was asked. */
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

/** No fault of the peer or the way: the kernel had no room. */
const WANT_OF_ROOM = /^(?:EAGAIN|EWOULDBLOCK|ENOBUFS|ENOMEM|EMSGSIZE)$/

/** Tells owners what the kernel said of their sockets; `sockets` by the place in their handle. */
export function tellNews(
  news: Int32Array,
  sockets: readonly (NativeConnected | undefined)[],
): void {
  for (let at = 0; at < news.length; at += NEWS_WORDS) {
    const handle = news[at]!
    const socket = sockets[handle & HANDLE_PLACE]
    if (socket?.handle !== handle) continue
    const code = errnoName(news[at + 1]!)
    if (news[at + 2]! > 0) socket.owner.dropped(news[at + 2]!)
    if (!WANT_OF_ROOM.test(code)) socket.owner.fault(code)
  }
}
