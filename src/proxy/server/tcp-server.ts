// TCP listeners of clients: frames in, frames out, with the bounds of docs/spec/semantics 6 and RFC 7766.
// Whole messages go into the shared batch with their connection's number; answers come back by that number in any
// order. Reading from a connection stops at 256 unanswered queries or when its client doesn't read answers.
//
// Nothing here recurses: an answer given while a batch is handled only lowers a count, and connections that
// may go on are served from a list on a later turn. Cost: no timer per connection, one sweep for all.
// Which sockets carry it (Node's or the addon's) is the business of `streams`.

import type { Clock } from '../../core/clock.ts'
import { RestingTimer } from '../../core/resting-timer.ts'
import type { BatchCollector } from '../messages/collector.ts'
import {
  ConnectionTable,
  DEFAULT_TCP_LIMITS,
  TcpCounters,
  type TcpServerLimits,
} from './connection-table.ts'
import { MessageView } from '../messages/message-view.ts'
import type { HandedConnection } from '../handed.ts'
import type {
  Arrival,
  Stream,
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

/** Timeouts are exact to this many milliseconds, or to a quarter of the shortest one. */
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
  /** Connections with gathered frames, to be written at the end of this turn. */
  #dirty: TcpConnection[] = []
  /** Paused connections whose bound no longer holds. */
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

  /** Listens on one more address; gives the port. Throws UnavailableError with the remedy when that's not possible. */
  async listen(options: StreamListen, accepts = true): Promise<number> {
    const listener = await this.#streams.listen(options, this)
    if (!accepts) listener.accepting(false)
    this.#listeners.push(listener)
    const shortest = Math.min(this.#limits.idleTimeout, this.#limits.messageTimeout)
    this.#sweeper ??= new RestingTimer(this.#clock, Math.min(SWEEP_MS, shortest / 4), () => {
      this.#sweep()
      return this.#table.count > 0
    })
    return listener.port
  }

  /** Answers one query of a connection, with `id` as the message's first octets. False when it's gone. */
  reply(channel: number, octets: Uint8Array, offset: number, length: number, id: number): boolean {
    const connection = this.#table.find(channel)
    if (connection === undefined) {
      this.counters.answersDropped++
      return false
    }
    connection.queue(octets, offset, length, id)
    this.counters.sent++
    this.#settled(connection)
    if (!connection.overfull) this.#markDirty(connection)
    else this.#close(connection, 'closedSlowReader')
    return true
  }

  /** One query of a connection gets no answer. */
  noReply(channel: number): void {
    const connection = this.#table.find(channel)
    if (connection === undefined) return
    this.#settled(connection)
    if (connection.finished) this.#markDirty(connection)
  }

  /** Closes the listeners behind the first `count`. */
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

  /** Off: connections wait in the kernel, as long as it has room; those that are open go on. */
  accepting(on: boolean): void {
    for (const listener of this.#listeners) listener.accepting(on)
  }

  /** Closes connections that are over; how many are left. */
  closeIdle(quietMs: number): number {
    const now = this.#clock.now()
    for (const connection of this.#table.all()) {
      if (connection.isOver(now, quietMs)) this.#close(connection)
    }
    return this.#table.count
  }

  /** By listener; undefined where it is Node's. */
  get descriptors(): readonly (number | undefined)[] {
    return this.#listeners.map(({ descriptor }) => descriptor)
  }

  /** Connections as they stand, whose sockets `duplicate` copies; all listeners and connections are let go. */
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

  /** Goes on with a connection; its number here, undefined when there is no room. It is read from now on. */
  takeOn(handed: HandedConnection): number | undefined {
    const arrival = arrivalOf(handed)
    let taken: TcpConnection | undefined
    const accept = (stream: Stream) => (taken = this.accept(stream, arrival))
    const acceptor = { accept, acceptFault: () => undefined }
    this.#streams.adopt(handed.descriptor, handed.unsent, arrival, acceptor)
    taken?.takeOn(handed)
    if (taken !== undefined) this.#wake(taken)
    return taken?.number
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

  /** Whether one more connection of the client fits, after closing an idle one if need be. */
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

  /** Puts whole messages into the batch until there's none or a bound says stop. */
  #pump(connection: TcpConnection): void {
    const { reader } = connection
    const before = this.counters.received
    const now = this.#clock.now()
    while (this.#mayRead(connection) && reader.next()) {
      // May hand the batch over, so it comes before this message counts as in flight.
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

  /** Lets a paused connection be read again on a later turn, if its bounds allow it then. */
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
