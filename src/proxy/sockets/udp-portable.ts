// PortableDatagrams implements Datagrams with Node's sockets, for explicit mode without the native part. A listener adds every
// datagram to the shared batch, and sends answers from its own address and port. Each socket has one family. The receive buffer is
// large, because a full buffer loses queries without a trace. An error does not close a socket: it is counted, and reading continues.

import type { RemoteInfo } from 'node:dgram'
import { UnavailableError } from '../../core/errors.ts'
import { formatAddress, type Family } from '../../core/ip.ts'
import { AddressBook, isAnswerable } from '../messages/address-book.ts'
import type { MessageBatch, BatchCollector } from '../messages/batch.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { MessageView } from '../../dns/message-view.ts'
import type {
  ConnectedSocket,
  DatagramOwner,
  Datagrams,
  UdpCounters,
  UdpListen,
  UdpListener,
} from './datagrams.ts'
import { DatagramSocket } from './datagram-socket.ts'
import { listenFault } from './listen-fault.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'

/** The requested receive buffer, in octets: 10,000 queries of 400 octets with overhead. The kernel allows up to net.core.rmem_max. */
const RECEIVE_BUFFER = 4 * 1024 * 1024
/** The requested receive buffer of each socket to a server, in octets. */
const ANSWERS_BUFFER = 512 * 1024

export class PortableDatagrams implements Datagrams {
  readonly native = false
  readonly #book = new AddressBook()
  #collector: BatchCollector | undefined
  #turn = 0

  /** A new number for each read, because every datagram is sent alone. */
  get turn(): number {
    return ++this.#turn
  }

  fill(collector: BatchCollector): void {
    this.#collector = collector
  }

  follow(): void {
    // Nothing to follow: Delivery delivers the answers at the end of the turn of the event loop.
  }

  listen(options: UdpListen): UdpListener {
    const { mode } = options
    if (mode !== 'explicit' || this.#collector === undefined) {
      throw new UnavailableError(
        `Cannot listen in mode ${mode}: native part udp is not built: apt-get install gcc libc6-dev libuv1-dev, then npm run build`,
      )
    }
    return new PortableListener(options, this.#collector, this.#book)
  }

  connect(server: ServerAddress, port: number, owner: DatagramOwner): ConnectedSocket | string {
    const socket = new DatagramSocket({
      family: server.family,
      receiveBuffer: ANSWERS_BUFFER,
      onMessage: (message) => owner.received(message, 0, message.length),
      onError: (code) => owner.fault(code),
    })
    const any = server.family === 4 ? '0.0.0.0' : '::'
    const fault = socket.bind(any, port) ?? socket.connect(server.address, server.port)
    if (fault === undefined) return new PortableConnected(socket, owner)
    socket.close()
    return fault.code
  }

  stop(): void {
    // The owner of each socket closes it.
  }
}

class PortableListener implements UdpListener {
  readonly channel: number
  readonly family: Family
  readonly counters: { -readonly [Name in keyof UdpCounters]: number } = {
    received: 0,
    sent: 0,
    ignoredSources: 0,
    oversized: 0,
    socketErrors: 0,
    sendsDropped: 0,
    kernelDrops: 0,
  }
  readonly descriptor = undefined
  readonly #book: AddressBook
  readonly #collector: BatchCollector
  readonly #socket: DatagramSocket

  /** Binds. If that fails, throws UnavailableError, which names the remedy. */
  constructor(options: UdpListen, collector: BatchCollector, book: AddressBook) {
    const { channel, family, octets, port } = options
    this.channel = channel
    this.family = family
    this.#collector = collector
    this.#book = book
    this.#socket = new DatagramSocket({
      family,
      receiveBuffer: RECEIVE_BUFFER,
      onMessage: (message, from) => this.#receive(message, from),
      onError: () => this.counters.socketErrors++,
    })
    const address = formatAddress(family, octets)
    const fault = this.#socket.bind(address, port)
    if (fault === undefined) return
    this.#socket.close()
    throw listenFault('UDP', address, port, fault.code)
  }

  get port(): number {
    return this.#socket.port
  }

  reading(): void {
    // Node reads as long as the socket is open, so there is nothing to do.
  }

  /** Sends from the socket's own address, because the client asked this address. */
  send(clients: ClientColumns, row: number, message: MessageView, id: number): void {
    const text = this.#book.write(this.family, clients.addresses, row * 16)
    if (this.#socket.sendTo(message, id, clients.ports[row]!, text)) this.counters.sent++
    else this.counters.sendsDropped++
  }

  stop(): void {
    this.#socket.close()
  }

  #receive(message: Uint8Array, from: RemoteInfo): void {
    this.counters.received++
    const peer = this.#book.read(from.address)
    if (peer === undefined || !isAnswerable(peer, from.port)) {
      this.counters.ignoredSources++
      return
    }
    const batch: MessageBatch = this.#collector.room()
    if (message.length > batch.store.stride) this.counters.oversized++
    batch.addUdp(this.channel, peer.family, peer.octets, from.port, message)
  }
}

class PortableConnected implements ConnectedSocket {
  readonly kernelDrops = 0
  readonly #socket: DatagramSocket
  readonly #owner: DatagramOwner

  constructor(socket: DatagramSocket, owner: DatagramOwner) {
    this.#socket = socket
    this.#owner = owner
  }

  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    if (this.#socket.send(octets, offset, length, id)) return true
    this.#owner.dropped(1)
    return false
  }

  close(): void {
    this.#socket.close()
  }
}
