// UpstreamUdp has several UDP sockets to one server. Each is bound to a random port and connected, so the kernel drops packets from
// other addresses or ports, and reports "port unreachable" (RFC 5452 9.2; docs/spec/correctness A1-A3, P10). Each query uses a random
// socket. Queries that are sent together use the same socket, and an attacker must still guess a port and an id for each. A socket
// is renewed after 10,000 queries or 60 s, and after 16 guesses: messages with an unknown id, or with the id of another question. An
// attacker who found its port must find the next one too. The old socket stays open until its queries have ended.

import { MessageView } from '../../dns/message-view.ts'
import type { Clock } from '../../core/clock.ts'
import type { ConnectedSocket, DatagramOwner } from '../sockets/connected-socket.ts'
import type { Datagrams } from '../sockets/datagrams.ts'
import type { RandomPool } from '../../core/random.ts'
import type { ServerAddress } from './server-pool.ts'
import type { SocketNumbers, UpstreamEvents, UpstreamSocket } from './upstream-socket.ts'

/** The number of sockets per server. 32 sockets add 5 bits to the 16 bits of a port that an attacker must guess. */
export const UDP_SOCKETS_PER_SERVER = 32
/** After this number of queries a socket takes no new query. */
export const RENEW_QUERIES = 10_000
/** After this time in milliseconds a socket takes no new query. */
export const RENEW_MS = 60_000
/**
 * After this number of guesses a socket takes no new query, and the queries that wait on it are asked in another way. A network that
 * repeats some packets renews few sockets.
 */
const GUESSES_MAX = 16
/** The lowest port that needs no privilege. Sockets use 1024..65535. */
const PORT_MIN = 1024
const PORT_COUNT = 65536 - PORT_MIN
/** Errors after which the route or the local address is gone. Bound sockets can then fail forever, but new sockets work. */
const WAY_LOST = /^(?:EINVAL|EADDRNOTAVAIL|ENETUNREACH|ENETDOWN|ENODEV)$/
/** How many random ports are tried. If half of all ports are in use, 1 of 65,536 sockets cannot be opened. */
const BIND_TRIES = 16

export interface UpstreamUdpOptions {
  readonly clock: Clock
  readonly datagrams: Pick<Datagrams, 'turn' | 'connect'>
  readonly random: RandomPool
  readonly numbers: SocketNumbers
  readonly events: UpstreamEvents
  readonly address: ServerAddress
  /** The server's number. */
  readonly server: number
  readonly sockets?: number
  readonly renewQueries?: number
  readonly renewMs?: number
}

export class UpstreamUdp {
  readonly counters = {
    /** Sockets that are open now, including old sockets whose queries have not ended. */
    open: 0,
    opened: 0,
    /** Random ports that were in use. */
    portsTaken: 0,
    /** Sockets that could not be opened. */
    openFailures: 0,
    sendsDropped: 0,
    /** Errors that the kernel reported (ICMP). */
    socketErrors: 0,
    /** Answers that were lost because a receive buffer was full, up to the last sweep. */
    kernelDrops: 0,
  }
  readonly options: UpstreamUdpOptions
  readonly #sockets: (UdpSocket | undefined)[]
  readonly #draining = new Set<UdpSocket>()
  readonly #renewQueries: number
  readonly #renewMs: number
  /** The socket that was chosen when `datagrams.turn` was `#turn`. */
  #current: UdpSocket | undefined
  #turn = -1
  /** The kernel drops of sockets that are closed. */
  #closedDrops = 0

  constructor(options: UpstreamUdpOptions) {
    this.options = options
    const count = options.sockets ?? UDP_SOCKETS_PER_SERVER
    this.#sockets = Array.from<UdpSocket | undefined>({ length: count })
    this.#renewQueries = options.renewQueries ?? RENEW_QUERIES
    this.#renewMs = options.renewMs ?? RENEW_MS
  }

  /** Returns a random socket, which is opened or renewed if necessary; undefined if no socket can be opened. */
  pick(): UpstreamSocket | undefined {
    const { turn } = this.options.datagrams
    const current = this.#current
    if (turn === this.#turn && current !== undefined && !this.#isSpent(current)) {
      current.queries++
      return current
    }
    this.#turn = turn
    this.#current = this.#draw()
    return this.#current
  }

  #draw(): UdpSocket | undefined {
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

  /** Closes sockets that are too old, so an idle daemon keeps no port open. */
  sweep(): void {
    for (let place = 0; place < this.#sockets.length; place++) {
      const socket = this.#sockets[place]
      if (socket !== undefined && this.#isWorn(socket)) this.#retire(place, socket)
    }
    let drops = this.#closedDrops
    for (const socket of this.#sockets) drops += socket?.kernelDrops ?? 0
    for (const socket of this.#draining) drops += socket.kernelDrops
    this.counters.kernelDrops = drops
  }

  /** Retires all sockets, because their route is gone. New queries open new sockets. */
  abandon(): void {
    for (const [place, socket] of this.#sockets.entries()) {
      if (socket !== undefined) this.#retire(place, socket)
    }
  }

  /** A socket calls it when it has closed. */
  closed(socket: UdpSocket): void {
    this.#draining.delete(socket)
    this.#closedDrops += socket.kernelDrops
    this.options.numbers.free(socket.number)
    this.counters.open--
  }

  stop(): void {
    for (const socket of this.#sockets) socket?.close()
    for (const socket of this.#draining) socket.close()
    this.#sockets.fill(undefined)
  }

  #isSpent(socket: UdpSocket): boolean {
    return socket.retired || socket.queries >= this.#renewQueries || socket.guesses >= GUESSES_MAX
  }

  #isWorn(socket: UdpSocket): boolean {
    const age = this.options.clock.now() - socket.openedAt
    return this.#isSpent(socket) || age >= this.#renewMs
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

class UdpSocket implements UpstreamSocket, DatagramOwner {
  readonly number: number
  readonly server: number
  readonly overTcp = false
  readonly openedAt: number
  /** The number of queries that were sent on the socket. */
  queries = 0
  /** The number of messages that can be an attacker's guesses. */
  guesses = 0
  retired = false
  readonly #owner: UpstreamUdp
  readonly #message = new MessageView()
  #socket: ConnectedSocket | undefined
  #closed = false

  constructor(owner: UpstreamUdp, number: number) {
    const { clock, server } = owner.options
    this.#owner = owner
    this.number = number
    this.server = server
    this.openedAt = clock.now()
  }

  get kernelDrops(): number {
    return this.#socket?.kernelDrops ?? 0
  }

  /** Binds and connects. Returns undefined on success, or the error code. */
  open(server: ServerAddress, port: number): string | undefined {
    const socket = this.#owner.options.datagrams.connect(server, port, this)
    if (typeof socket === 'string') return socket
    this.#socket = socket
    return undefined
  }

  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    this.#socket?.send(octets, offset, length, id)
    return this.#socket !== undefined
  }

  received(source: Uint8Array, offset: number, length: number): void {
    this.#owner.options.events.onMessage(this, this.#message.set(source, offset, length))
  }

  guessed(): boolean {
    return ++this.guesses === GUESSES_MAX
  }

  fault(code: string): void {
    const { options, counters } = this.#owner
    if (this.#closed) return
    counters.socketErrors++
    if (WAY_LOST.test(code)) this.#owner.abandon()
    if (!this.#closed) options.events.onFault(this)
  }

  dropped(count: number): void {
    this.#owner.counters.sendsDropped += count
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
    this.#socket?.close()
    this.#owner.closed(this)
  }
}
