// UpstreamTcp has one connection to one server, which many queries use at the same time (RFC 7766 6.2.1, 7). The first query opens
// the connection, which closes when idle. If the connection closes or stays silent, its queries make their next attempt, and the
// next query opens a new connection. A silent connection stays open until its queries have ended.

import { MessageView } from '../../dns/message-view.ts'
import type { Clock } from '../../core/clock.ts'
import { FrameReader } from '../../dns/framing.ts'
import type { ServerAddress } from './server-pool.ts'
import type { Stream, StreamOwner } from '../sockets/stream.ts'
import type { Streams } from '../sockets/streams.ts'
import type { SocketNumbers, UpstreamEvents, UpstreamSocket } from './upstream-socket.ts'

/** A connection without queries is closed after this time, in milliseconds. */
const IDLE_MS = 10_000
/** The largest number of unsent octets. If a server does not read and more octets wait, further sends fail at once. */
const UNSENT_MAX_OCTETS = 4 * 1024 * 1024

export interface UpstreamTcpOptions {
  readonly clock: Clock
  readonly streams: Pick<Streams, 'connect'>
  readonly numbers: SocketNumbers
  readonly events: UpstreamEvents
  readonly address: ServerAddress
  readonly server: number
}

export class UpstreamTcp {
  readonly counters = {
    open: 0,
    opened: 0,
    /** Connections that an error or the server ended while queries waited. */
    faults: 0,
    closedIdle: 0,
    sendsDropped: 0,
  }
  readonly options: UpstreamTcpOptions
  #current: TcpSocket | undefined
  /** Connections that take no new queries, and whose queries have not ended. */
  readonly #draining = new Set<TcpSocket>()

  constructor(options: UpstreamTcpOptions) {
    this.options = options
  }

  /** Returns the connection in use, or a new connection; undefined if no socket number is free. */
  pick(): UpstreamSocket | undefined {
    if (this.#current !== undefined) return this.#current
    const number = this.options.numbers.take()
    if (number < 0) return undefined
    this.#current = new TcpSocket(this, number)
    this.options.numbers.set(number, this.#current)
    this.counters.open++
    this.counters.opened++
    return this.#current
  }

  /** Call it when a query that was sent at `sentAt` got no answer in time. If the connection was silent since, no new query uses it. */
  doubt(number: number, sentAt: number): void {
    const socket = this.#current
    if (socket?.number !== number || socket.receivedAt >= sentAt) return
    this.detach(socket)
    socket.retire()
  }

  /** Lets a connection take no new queries. */
  detach(socket: TcpSocket): void {
    if (this.#current === socket) this.#current = undefined
    this.#draining.add(socket)
  }

  /** Closes the connection if it is idle. */
  sweep(): void {
    if (this.#current === undefined || !this.#current.isIdle(this.options.clock.now())) return
    this.counters.closedIdle++
    this.#current.close()
  }

  /** A connection calls it when it has closed. */
  closed(socket: TcpSocket): void {
    if (this.#current === socket) this.#current = undefined
    this.#draining.delete(socket)
    this.options.numbers.free(socket.number)
    this.counters.open--
  }

  stop(): void {
    this.#current?.close()
    for (const socket of this.#draining) socket.close()
  }
}

class TcpSocket implements UpstreamSocket, StreamOwner {
  readonly number: number
  readonly server: number
  readonly overTcp = true
  retired = false
  /** When octets last arrived; -Infinity before the first. */
  receivedAt: number
  readonly #owner: UpstreamTcp
  readonly #stream: Stream
  readonly #reader = new FrameReader()
  readonly #message = new MessageView()
  readonly #runFlush = (): void => this.#flush()
  #flushing = false
  #closed = false
  /** Since when no query waits on the connection; -1 while a query waits. */
  #idleSince: number

  constructor(owner: UpstreamTcp, number: number) {
    const { clock, streams, address, server } = owner.options
    this.#owner = owner
    this.number = number
    this.server = server
    this.receivedAt = -Infinity
    this.#idleSince = clock.now()
    this.#stream = streams.connect(address, this)
  }

  /** An attacker who can write into the connection needs no guess. */
  guessed(): boolean {
    return false
  }

  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    if (this.#stream.unsent > UNSENT_MAX_OCTETS) {
      this.#owner.counters.sendsDropped++
      return false
    }
    this.#stream.queue(octets, offset, length, id)
    this.#idleSince = -1
    if (!this.#flushing) {
      this.#flushing = true
      queueMicrotask(this.#runFlush)
    }
    return true
  }

  isIdle(now: number): boolean {
    return this.#idleSince >= 0 && now - this.#idleSince > IDLE_MS
  }

  retire(): void {
    this.retired = true
    if (!this.#owner.options.events.isWaiting(this.number)) this.close()
  }

  drained(): void {
    if (this.retired) this.close()
    else this.#idleSince = this.#owner.options.clock.now()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#stream.destroy()
    this.#owner.closed(this)
  }

  received(source: Uint8Array, from: number, count: number): void {
    if (this.#closed) return
    const { events, clock } = this.#owner.options
    this.receivedAt = clock.now()
    this.#reader.push(source, from, from + count)
    while (!this.#closed && this.#reader.next()) {
      const { buffer, offset, length } = this.#reader
      events.onMessage(this, this.#message.set(buffer, offset, length))
    }
  }

  ended(): void {
    this.#ended()
  }

  closed(): void {
    this.#ended()
  }

  taken(): void {
    // Nothing to do: if a server does not read, its missing answers show it.
  }

  #flush(): void {
    this.#flushing = false
    if (!this.#closed) this.#stream.flush()
  }

  /** Handles the end of the connection, by the server or an error: its queries make their next attempt (RFC 7766 6.2.4). */
  #ended(): void {
    if (this.#closed) return
    if (this.#idleSince < 0) this.#owner.counters.faults++
    // No new query can use the connection. Its number is freed after its waits have ended.
    this.retired = true
    this.#owner.detach(this)
    this.#owner.options.events.onFault(this)
    this.close()
  }
}
