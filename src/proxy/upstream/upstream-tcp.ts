// TCP towards one server: one connection that is reused and pipelined (RFC 7766 6.2.1, 7), opened when first
// needed, closed when idle. When it closes or stays silent its queries are asked again elsewhere and the next
// query opens a new one; a silent one is kept until its queries have ended.

import type { Clock } from '../../core/clock.ts'
import { FrameReader } from '../../dns/framing.ts'
import type { ServerAddress } from './server-pool.ts'
import type { Stream, StreamOwner, Streams } from '../sockets/streams.ts'
import type { SocketNumbers, UpstreamEvents, UpstreamSocket } from './upstream-socket.ts'

/** A connection without queries is closed after so many milliseconds. */
const IDLE_MS = 10_000
/** Octets that wait for a server which doesn't read; beyond that queries fail at once. */
const UNSENT_MAX_OCTETS = 4 * 1024 * 1024

export interface UpstreamTcpOptions {
  readonly clock: Clock
  readonly streams: Streams
  readonly numbers: SocketNumbers
  readonly events: UpstreamEvents
  readonly address: ServerAddress
  readonly server: number
}

export class UpstreamTcp {
  readonly counters = {
    open: 0,
    opened: 0,
    /** Connections that ended by an error, or by the server while queries waited. */
    faults: 0,
    closedIdle: 0,
    sendsDropped: 0,
  }
  readonly options: UpstreamTcpOptions
  #current: TcpSocket | undefined
  /** Retired ones whose queries haven't ended. */
  readonly #draining = new Set<TcpSocket>()

  constructor(options: UpstreamTcpOptions) {
    this.options = options
  }

  /** The connection in use, or a new one; undefined when no number is free. */
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

  /** A query sent at `sentAt` has had no answer in time: a connection that was silent since takes no more queries. */
  doubt(number: number, sentAt: number): void {
    const socket = this.#current
    if (socket?.number !== number || socket.receivedAt >= sentAt) return
    this.detach(socket)
    socket.retire()
  }

  /** A connection that takes no new queries. */
  detach(socket: TcpSocket): void {
    if (this.#current === socket) this.#current = undefined
    this.#draining.add(socket)
  }

  /** Closes the connection when it's idle. */
  sweep(): void {
    if (this.#current === undefined || !this.#current.isIdle(this.options.clock.now())) return
    this.counters.closedIdle++
    this.#current.close()
  }

  /** Called by a connection that closed. */
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
  /** When octets last came; before the first, when it was opened. */
  receivedAt: number
  readonly #owner: UpstreamTcp
  readonly #stream: Stream
  readonly #reader = new FrameReader()
  readonly #runFlush = (): void => this.#flush()
  #flushing = false
  #closed = false
  /** Since when it waits for nothing; -1 while it waits. */
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
      events.onMessage(this, buffer, offset, length)
    }
  }

  ended(): void {
    this.#ended()
  }

  closed(): void {
    this.#ended()
  }

  taken(): void {
    // Answers are what counts; a server that doesn't read is found by its silence.
  }

  #flush(): void {
    this.#flushing = false
    if (!this.#closed) this.#stream.flush()
  }

  /** The server closed, or the connection failed: its queries are asked again (RFC 7766 6.2.4). */
  #ended(): void {
    if (this.#closed) return
    if (this.#idleSince < 0) this.#owner.counters.faults++
    // No new query may pick it; its number is freed only after its waits were ended.
    this.retired = true
    this.#owner.detach(this)
    this.#owner.options.events.onFault(this)
    this.close()
  }
}
