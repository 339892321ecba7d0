// UdpListener is a UDP socket of the addon on which queries arrive. The addon reads it in the turns of Datagrams. A send only adds a row
// to the next flush. The addon counts, and the counts are read on request.

import type { ListenerMode } from '../../config/config.ts'
import { formatAddress, type Family } from '../../core/ip.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { errnoName } from '../../native/native.ts'
import {
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
import type { ClientColumns } from '../messages/client-columns.ts'
import { listenFault } from './listen-fault.ts'
import type { ReplySockets } from './reply-sockets.ts'
import type { SocketEngine } from './socket-engine.ts'

export interface UdpListen {
  /** The number of the listener, unique among UDP listeners. Its messages have it in `channels`. */
  readonly channel: number
  readonly family: Family
  /** 16 octets. An IPv4 address is in the first 4. Zeros mean every address of the family. */
  readonly octets: Uint8Array
  /** 0: the kernel chooses a free port. */
  readonly port: number
  readonly mode: ListenerMode
  /** A socket that is already bound to this address and port, possibly in another network namespace. */
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
  /** Queries that were lost because the receive buffer was full. */
  readonly kernelDrops: number
}

/** The requested receive buffer of a listener, in octets: 20,000 queries with their overhead. */
const RECEIVE_BUFFER = 8 * 1024 * 1024

export class UdpListener {
  readonly channel: number
  readonly family: Family
  /** The bound port. */
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

  /** The socket's descriptor, for the successor. The listener keeps it. */
  get descriptor(): number {
    return this.#engine.descriptorOf(this.#handle)
  }

  /** Turns reading on or off. While it is off, queries wait in the receive buffer. */
  reading(on: boolean): void {
    this.#engine.reading(this.#handle, on)
  }

  /** Sends a copy to the client of a row, with `id` as the first two octets. Its source is the server that the client asked. */
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
