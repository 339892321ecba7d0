// A UDP listener on Node's own sockets, for explicit mode and where no addon could be built. It puts every
// datagram into the shared batch and sends answers from the address and port that it is bound to.
// One socket, one family; the receive buffer is large because a full one loses queries in silence.
// No error of the socket ends it: faults are counted and the next datagram is read.

import type { RemoteInfo } from 'node:dgram'
import type { Family } from '../core/ip.ts'
import { isAnswerable, type AddressBook } from './address-book.ts'
import type { MessageBatch } from './batch.ts'
import type { ClientColumns } from './client-columns.ts'
import type { BatchCollector } from './collector.ts'
import { DatagramSocket } from './datagram-socket.ts'
import { listenFault } from './listen.ts'

/** Octets asked of the kernel (it takes at most net.core.rmem_max): 10,000 queries of 400 octets with their overhead. */
const RECEIVE_BUFFER = 4 * 1024 * 1024

export interface UdpListenerOptions {
  readonly collector: BatchCollector
  readonly book: AddressBook
  /** Number of this listener, unique among UDP listeners; `channels` of its messages. */
  readonly channel: number
  readonly family: Family
  readonly address: string
  /** 0 takes any free port. */
  readonly port: number
}

export class UdpListener {
  readonly channel: number
  readonly family: Family
  readonly counters = {
    received: 0,
    sent: 0,
    /** Source port 0, or a source that is no single host (SEMANTICS 4: nothing). */
    ignoredSources: 0,
    /** Longer than `limits.udp-message`. */
    oversized: 0,
    /** Errors that the kernel reported on the socket. */
    socketErrors: 0,
    /** Answers lost because the kernel took no more. */
    sendsDropped: 0,
  }
  readonly #options: UdpListenerOptions
  readonly #socket: DatagramSocket

  constructor(options: UdpListenerOptions) {
    this.#options = options
    this.channel = options.channel
    this.family = options.family
    this.#socket = new DatagramSocket({
      family: options.family,
      receiveBuffer: RECEIVE_BUFFER,
      onMessage: (message, from) => this.#receive(message, from),
      onError: () => this.counters.socketErrors++,
    })
  }

  /** Binds; throws UnavailableError with the remedy when that's not possible. */
  start(): void {
    const { address, port } = this.#options
    const fault = this.#socket.bind(address, port)
    if (fault === undefined) return
    this.#socket.close()
    throw listenFault('UDP', address, port, fault.code)
  }

  /** The port bound. */
  get port(): number {
    return this.#socket.port
  }

  /** As DatagramSender.send; the socket's own address is the one that was asked. */
  send(
    clients: ClientColumns,
    row: number,
    octets: Uint8Array,
    offset: number,
    length: number,
    id: number,
  ): void {
    const text = this.#options.book.write(this.family, clients.addresses, row * 16)
    if (this.#socket.sendTo(octets, offset, length, id, clients.ports[row]!, text))
      this.counters.sent++
    else this.counters.sendsDropped++
  }

  stop(): void {
    this.#socket.close()
  }

  #receive(message: Uint8Array, from: RemoteInfo): void {
    this.counters.received++
    const peer = this.#options.book.read(from.address)
    if (peer === undefined || !isAnswerable(peer, from.port)) {
      this.counters.ignoredSources++
      return
    }
    const batch: MessageBatch = this.#options.collector.room()
    if (message.length > batch.store.stride) this.counters.oversized++
    batch.addUdp(this.channel, peer.family, peer.octets, from.port, message)
  }
}
