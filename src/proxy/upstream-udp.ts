// UDP towards one server: many sockets at once, each bound to a random port and connected, so that the kernel
// drops what comes from another address or port and reports "port unreachable" (RFC 5452 9.2; CORRECTNESS
// A1-A3, P10). Each query takes one of them at random. A socket is renewed after 10,000 queries or 60 s; the
// old one stays open until its queries have ended.

import type { Clock } from '../core/clock.ts'
import { DatagramSocket } from './datagram-socket.ts'
import type { RandomPool } from './random.ts'
import type { ServerAddress } from './server-pool.ts'
import type { SocketNumbers, UpstreamEvents, UpstreamSocket } from './upstream-socket.ts'

/** Sockets at once per server: 5 bits on top of a port's 16 for whoever guesses. */
export const UDP_SOCKETS_PER_SERVER = 32
/** After so many queries or milliseconds a socket takes no new query. */
export const RENEW_QUERIES = 10_000
export const RENEW_MS = 60_000
/** Ports that need no privilege: 1024..65535. */
const PORT_MIN = 1024
const PORT_COUNT = 65536 - PORT_MIN
/** Random ports tried before giving up; with half of all ports taken 1 in 65,536 fails. */
const BIND_TRIES = 16
/** Octets asked of the kernel for each socket's answers. */
const RECEIVE_BUFFER = 512 * 1024

export interface UpstreamUdpOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly numbers: SocketNumbers
  readonly events: UpstreamEvents
  readonly address: ServerAddress
  /** Its index in the pool. */
  readonly server: number
  readonly sockets?: number
  readonly renewQueries?: number
  readonly renewMs?: number
}

export class UpstreamUdp {
  readonly counters = {
    /** Sockets open now, renewed ones that still wait included. */
    open: 0,
    opened: 0,
    /** Random ports that were taken. */
    portsTaken: 0,
    /** Sockets that couldn't be made. */
    openFailures: 0,
    sendsDropped: 0,
    /** Errors that the kernel reported (ICMP). */
    socketErrors: 0,
  }
  readonly options: UpstreamUdpOptions
  readonly #sockets: (UdpSocket | undefined)[]
  readonly #draining = new Set<UdpSocket>()
  readonly #renewQueries: number
  readonly #renewMs: number

  constructor(options: UpstreamUdpOptions) {
    this.options = options
    const count = options.sockets ?? UDP_SOCKETS_PER_SERVER
    this.#sockets = Array.from<UdpSocket | undefined>({ length: count })
    this.#renewQueries = options.renewQueries ?? RENEW_QUERIES
    this.#renewMs = options.renewMs ?? RENEW_MS
  }

  /** A socket at random, new or renewed if need be; undefined when none can be opened. */
  pick(): UpstreamSocket | undefined {
    const place = this.options.random.below(this.#sockets.length)
    let socket = this.#sockets[place]
    if (socket !== undefined && this.#isWorn(socket)) {
      this.#retire(place, socket)
      socket = undefined
    }
    if (socket === undefined) {
      socket = this.#open()
      this.#sockets[place] = socket
    }
    if (socket !== undefined) socket.queries++
    return socket
  }

  /** Closes sockets that are over age, so that an idle daemon keeps no port open. */
  sweep(): void {
    for (let place = 0; place < this.#sockets.length; place++) {
      const socket = this.#sockets[place]
      if (socket !== undefined && this.#isWorn(socket)) this.#retire(place, socket)
    }
  }

  /** Called by a socket that closed. */
  closed(socket: UdpSocket): void {
    this.#draining.delete(socket)
    this.options.numbers.free(socket.number)
    this.counters.open--
  }

  stop(): void {
    for (const socket of this.#sockets) socket?.close()
    for (const socket of this.#draining) socket.close()
    this.#sockets.fill(undefined)
  }

  #isWorn(socket: UdpSocket): boolean {
    const age = this.options.clock.now() - socket.openedAt
    return socket.queries >= this.#renewQueries || age >= this.#renewMs
  }

  #retire(place: number, socket: UdpSocket): void {
    this.#sockets[place] = undefined
    this.#draining.add(socket)
    socket.retire()
  }

  #open(): UdpSocket | undefined {
    const { address, random, numbers } = this.options
    const number = numbers.take()
    if (number < 0) return undefined
    for (let i = 0; i < BIND_TRIES; i++) {
      const socket = new UdpSocket(this, number)
      const port = PORT_MIN + random.below(PORT_COUNT)
      const code = socket.open(address, port)
      if (code === undefined) {
        numbers.set(number, socket)
        this.counters.open++
        this.counters.opened++
        return socket
      }
      if (code !== 'EADDRINUSE') break
      this.counters.portsTaken++
    }
    numbers.free(number)
    this.counters.openFailures++
    return undefined
  }
}

class UdpSocket implements UpstreamSocket {
  readonly number: number
  readonly server: number
  readonly overTcp = false
  readonly openedAt: number
  /** Queries sent so far. */
  queries = 0
  retired = false
  readonly #owner: UpstreamUdp
  readonly #socket: DatagramSocket
  #closed = false

  constructor(owner: UpstreamUdp, number: number) {
    const { clock, server, events, address } = owner.options
    this.#owner = owner
    this.number = number
    this.server = server
    this.openedAt = clock.now()
    this.#socket = new DatagramSocket({
      family: address.family,
      receiveBuffer: RECEIVE_BUFFER,
      onMessage: (message) => events.onMessage(this, message, 0, message.length),
      onError: () => {
        owner.counters.socketErrors++
        events.onFault(this)
      },
    })
  }

  /** Binds and connects; the error code when that fails, and then it's closed. */
  open(server: ServerAddress, port: number): string | undefined {
    const any = server.family === 4 ? '0.0.0.0' : '::'
    const fault = this.#socket.bind(any, port) ?? this.#socket.connect(server.address, server.port)
    if (fault !== undefined) this.#socket.close()
    return fault?.code
  }

  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    if (this.#socket.send(octets, offset, length, id)) return true
    this.#owner.counters.sendsDropped++
    return false
  }

  retire(): void {
    this.retired = true
    if (!this.#owner.options.events.isWaiting(this.number)) this.close()
  }

  drained(): void {
    if (this.retired) this.close()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#socket.close()
    this.#owner.closed(this)
  }
}
