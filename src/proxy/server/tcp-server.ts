// TcpServer reads queries from TCP clients and writes the answers, with the bounds of docs/spec/semantics 6 and RFC 7766. It adds
// whole messages to the shared batch, with the number of their connection. The pipeline answers by this number, in any order.
// TcpServer stops reading a connection at 256 unanswered queries (by default), or when the client does not read its answers.
//
// TcpServer does not recurse: an answer during the handling of a batch only lowers a count. Connections that can be read again are
// put on a list, and read in a later turn. One timer checks the timeouts of all connections.

import type { Clock } from '../../core/clock.ts'
import { RestingTimer } from '../../core/resting-timer.ts'
import type { BatchCollector } from '../messages/batch.ts'
import {
  ConnectionTable,
  DEFAULT_TCP_LIMITS,
  TcpCounters,
  type TcpServerLimits,
} from './connection-table.ts'
import { MessageView } from '../../dns/message-view.ts'
import type { HandedConnection } from '../handed.ts'
import type { Stream } from '../sockets/stream.ts'
import type {
  Arrival,
  StreamAcceptor,
  StreamListen,
  StreamListener,
  Streams,
} from '../sockets/streams.ts'
import { arrivalOf, type ConnectionHost, TcpConnection, whyClose } from './tcp-connection.ts'

export interface TcpServerOptions {
  readonly clock: Clock
  readonly collector: BatchCollector
  readonly streams: Streams
  readonly limits?: TcpServerLimits
}

/** The precision of timeouts in milliseconds. If a quarter of the shortest timeout is less, this quarter is the precision. */
const SWEEP_MS = 250

export class TcpServer implements StreamAcceptor, ConnectionHost {
  readonly counters = new TcpCounters()
  readonly #clock: Clock
  readonly #collector: BatchCollector
  readonly #streams: Streams
  readonly #limits: TcpServerLimits
  readonly #table: ConnectionTable
  readonly #message = new MessageView()
  readonly #listeners: StreamListener[] = []
  /** Connections with frames that must be written at the end of this turn. */
  #dirty: TcpConnection[] = []
  /** Paused connections that must be checked again in the next turn. */
  #ready: TcpConnection[] = []
  #sweeper: RestingTimer | undefined
  readonly #runFlush = (): void => this.#flushDirty()
  readonly #runReady = (): void => this.#pumpReady()

  constructor(options: TcpServerOptions) {
    this.#clock = options.clock
    this.#collector = options.collector
    this.#streams = options.streams
    this.#limits = options.limits ?? DEFAULT_TCP_LIMITS
    this.#table = new ConnectionTable(this.#limits)
  }

  /** Listens on one more address, and returns the port. If that fails, throws UnavailableError, which names the remedy. */
  listen(options: StreamListen): number {
    const listener = this.#streams.listen(options, this)
    this.#listeners.push(listener)
    const shortest = Math.min(this.#limits.idleTimeout, this.#limits.messageTimeout)
    this.#sweeper ??= new RestingTimer(this.#clock, Math.min(SWEEP_MS, shortest / 4), () => {
      this.#sweep()
      return this.#table.count > 0
    })
    return listener.port
  }

  /** Answers one query of a connection. `id` replaces the first two octets. If the connection is closed, only counts the answer. */
  reply(channel: number, { octets, offset, length }: MessageView, id: number): void {
    const connection = this.#table.find(channel)
    if (connection === undefined) {
      this.counters.answersDropped++
      return
    }
    connection.queue(octets, offset, length, id)
    this.counters.sent++
    this.#settled(connection)
    if (!connection.overfull) this.#markDirty(connection)
    else this.#close(connection, 'closedSlowReader')
  }

  /** Ends one query of a connection without an answer. */
  noReply(channel: number): void {
    const connection = this.#table.find(channel)
    if (connection === undefined) return
    this.#settled(connection)
    if (connection.finished) this.#markDirty(connection)
  }

  /** Closes all listeners except the first `count`. */
  closeListeners(count: number): void {
    for (const listener of this.#listeners.splice(count)) listener.close()
  }

  /** Closes listeners and connections at once. */
  stop(): void {
    this.#sweeper?.stop()
    this.#sweeper = undefined
    this.closeListeners(0)
    for (const connection of this.#table.all()) this.#close(connection)
  }

  /** Turns accepting on or off. While it is off, new connections wait in the kernel. Open connections continue. */
  accepting(on: boolean): void {
    for (const listener of this.#listeners) listener.accepting(on)
  }

  /** Closes the connections for which `isOver` is true. Returns the number of open connections. */
  closeIdle(quietMs: number): number {
    const now = this.#clock.now()
    for (const connection of this.#table.all()) {
      if (connection.isOver(now, quietMs)) this.#close(connection)
    }
    return this.#table.count
  }

  /** The descriptor of each listener. */
  get descriptors(): readonly number[] {
    return this.#listeners.map(({ descriptor }) => descriptor)
  }

  /** Returns all connections, with sockets that `duplicate` copies. This process gives up its listeners and connections. */
  handOut(duplicate: (descriptor: number) => number): readonly HandedConnection[] {
    this.#flushDirty()
    const handed: HandedConnection[] = []
    for (const connection of this.#table.all()) {
      const found = connection.handOut()
      if (found !== undefined) handed.push({ ...found, descriptor: duplicate(found.descriptor) })
      this.#forget(connection)
      connection.letGo()
    }
    this.stop()
    return handed
  }

  /** Continues a connection of another daemon and reads it. Returns its number in this daemon, or undefined if there is no room. */
  takeOn(handed: HandedConnection): number | undefined {
    const stream = this.#streams.adopt(handed.descriptor, handed.unsent)
    if (stream === undefined) return undefined
    const connection = this.accept(stream, arrivalOf(handed))
    stream.owner = connection
    if (connection === undefined) {
      stream.destroy()
      return undefined
    }
    connection.takeOn(handed)
    this.#wake(connection)
    return connection.number
  }

  now = (): number => this.#clock.now()

  acceptFault = (): void => void this.counters.socketErrors++

  accept(stream: Stream, arrival: Arrival): TcpConnection | undefined {
    if (!this.#makeRoom(arrival.peer.text)) return undefined
    const connection = new TcpConnection(this.#table.nextNumber(), stream, arrival, this)
    this.#table.add(connection)
    this.#sweeper?.wake()
    this.counters.accepted++
    this.counters.open = this.#table.count
    return connection
  }

  readable(connection: TcpConnection): void {
    this.#pump(connection)
  }

  halfClosed(connection: TcpConnection): void {
    this.#markDirty(connection)
  }

  writable(connection: TcpConnection): void {
    this.#wake(connection)
  }

  gone(connection: TcpConnection, fault: boolean): void {
    if (fault) this.counters.socketErrors++
    this.#forget(connection)
  }

  /** Makes room for one more connection of the client, if necessary by closing an idle one. Returns false if there is no room. */
  #makeRoom(client: string): boolean {
    const room = this.#table.roomFor(client)
    switch (room.kind) {
      case 'ok':
        return true
      case 'evict':
        this.#close(room.connection, 'evicted')
        return true
      case 'client-full':
        this.counters.refusedClientFull++
        return false
      case 'full':
        this.counters.refusedFull++
        return false
    }
  }

  /** Adds whole messages to the batch until no whole message is left or a bound is reached. */
  #pump(connection: TcpConnection): void {
    const { reader } = connection
    const before = this.counters.received
    const now = this.#clock.now()
    while (this.#mayRead(connection) && reader.next()) {
      // `room` can hand the batch over, so it must be called before this message is counted as in flight.
      const batch = this.#collector.room()
      this.counters.received++
      connection.inFlight++
      connection.hasAsked = true
      connection.addTo(batch, this.#message)
    }
    if (this.#table.find(connection.number) !== connection) return
    if (this.counters.received !== before) {
      connection.partialSince = -1
      connection.lastMessageAt = now
      this.#table.touch(connection)
    }
    if (this.#mayRead(connection)) {
      connection.notePartial(now)
      connection.resume()
      return
    }
    reader.hold()
    if (connection.paused) return
    this.counters.readsPaused++
    connection.pause()
  }

  #mayRead(connection: TcpConnection): boolean {
    return connection.inFlight < this.#limits.queriesPerConnection && !connection.congested
  }

  #settled(connection: TcpConnection): void {
    connection.inFlight--
    if (connection.paused) this.#wake(connection)
  }

  /** Checks a paused connection again in a later turn. If its bounds allow it then, it is read again. */
  #wake(connection: TcpConnection): void {
    if (!connection.paused || connection.waking) return
    connection.waking = true
    if (this.#ready.length === 0) this.#clock.soon(this.#runReady)
    this.#ready.push(connection)
  }

  #pumpReady(): void {
    const ready = this.#ready
    this.#ready = []
    for (const connection of ready) {
      connection.waking = false
      if (connection.paused && this.#mayRead(connection)) this.#pump(connection)
      if (connection.finished) this.#markDirty(connection)
    }
  }

  #markDirty(connection: TcpConnection): void {
    if (connection.dirty) return
    connection.dirty = true
    if (this.#dirty.length === 0) queueMicrotask(this.#runFlush)
    this.#dirty.push(connection)
  }

  #flushDirty(): void {
    const dirty = this.#dirty
    this.#dirty = []
    for (const connection of dirty) {
      if (!connection.finished) connection.flush()
      else if (connection.end()) this.#forget(connection)
      this.#wake(connection)
    }
  }

  #sweep(): void {
    const now = this.#clock.now()
    for (const connection of this.#table.all()) {
      const reason = whyClose(connection, now, this.#limits)
      if (reason !== undefined) this.#close(connection, reason)
    }
  }

  #close(connection: TcpConnection, counter?: keyof TcpCounters): void {
    if (counter !== undefined) this.counters[counter]++
    this.#forget(connection)
    connection.destroy()
  }

  #forget(connection: TcpConnection): void {
    if (this.#table.remove(connection)) this.counters.open = this.#table.count
  }
}
