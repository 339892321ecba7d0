// Datagrams has all UDP sockets of the proxy. They are sockets of the addon, which one engine watches. If a socket has something to
// read, the event loop calls `#turn`. A round of `#turn` reads queries into the batch, lets the pipeline admit them, and sends; then it reads
// answers, lets the pipeline settle them, and sends. The number of rounds is bounded, so timers and TCP are not delayed.
//
// Datagrams from outside `#turn` (timers, TCP) are sent at the end of the turn of the event loop. Errors of the kernel (such as a
// refusal or a full buffer) are reported after a flush, and never during `send`.

import type { Clock, TurnClock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { parseAddress } from '../../core/ip.ts'
import { invariant } from '../../core/invariant.ts'
import { errnoName } from '../../native/native.ts'
import {
  HANDLE_PLACE,
  REPORT_WORDS,
  SPEC_WORDS,
  STAT_WORDS,
  type UdpAddon,
} from '../../native/udp/udp.ts'
import type { Delivery } from '../messages/answer-batch.ts'
import type { BatchCollector } from '../messages/batch.ts'
import { ConnectedSocket, reportErrors, type DatagramOwner } from './connected-socket.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { ReplySockets } from './reply-sockets.ts'
import { writeSpec, type SocketEngine, type SocketSpec } from './socket-engine.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'
import {
  ANSWER_OCTETS,
  ANSWER_STRIDE,
  AnswerCells,
  SendRows,
  shareAnswers,
  shareInFlight,
  shareQueries,
  shareSends,
} from './shared-memory.ts'
import { UdpListener, type UdpListen } from './udp-listener.ts'

export interface DatagramsOptions {
  readonly addon: UdpAddon
  readonly clock: Clock
  /** The clock that stands still during `#turn`. */
  readonly time?: TurnClock | undefined
  /** SO_MARK of packets to servers; 0: none. */
  readonly mark?: number
  /** `limits.reply-sockets`. */
  readonly replySockets?: number
  /** The requested send buffer of a socket, in octets; 0: the kernel's default. */
  readonly sendBuffer?: number
}

/** The largest number of rounds in one turn. */
const ROUNDS_MAX = 4
/** The largest number of flushes in a row. After a failed send, its owner can send again. Rows that are left wait for the next turn. */
const FLUSHES_MAX = 4
/** The requested receive buffer of a socket to a server, in octets. */
const ANSWERS_BUFFER = 1024 * 1024
const NOWHERE = new Uint8Array(16)

export class Datagrams implements SocketEngine {
  readonly sends = new SendRows()
  readonly replies: ReplySockets
  /** The number of flushes. The upstream chooses a socket again when this number has changed. */
  turn = 0
  readonly #addon: UdpAddon
  readonly #engine: object
  readonly #clock: Clock
  readonly #time: TurnClock | undefined
  readonly #mark: number
  readonly #sendBuffer: number
  readonly #spec = new Int32Array(SPEC_WORDS)
  readonly #answers = new AnswerCells()
  /** Connected sockets. The index is `handle & HANDLE_PLACE`. */
  readonly #connected: (ConnectedSocket | undefined)[] = []
  #collector: BatchCollector | undefined
  #delivery: Delivery | undefined
  #scheduled = false
  #stopped = false
  readonly #runFlush = (): void => {
    this.#scheduled = false
    if (!this.#stopped) this.flush()
  }

  constructor(options: DatagramsOptions) {
    const { addon, clock, mark = 0, replySockets = 1024, sendBuffer = 0 } = options
    const engine = addon.open(() => this.#turn())
    if (typeof engine === 'number') {
      throw new UnavailableError(`Cannot watch sockets: ${errnoName(engine)}`)
    }
    this.#addon = addon
    this.#engine = engine
    this.#clock = clock
    this.#time = options.time
    this.#mark = mark
    this.#sendBuffer = sendBuffer
    this.replies = new ReplySockets(this, replySockets)
    const { sends } = this
    sends.answers = this.#answers.slab
    shareAnswers(addon, engine, this.#answers)
    shareSends(addon, engine, sends)
  }

  /** Sets the collector that receives queries. Call it before `listen`. */
  fill(collector: BatchCollector): void {
    invariant(this.#collector === undefined, 'one collector takes the queries')
    this.#collector = collector
    this.sends.queries = collector.batch
    shareQueries(this.#addon, this.#engine, collector.batch)
  }

  /** Sets the delivery that gathers answers to queries in `inFlight`. Call it before `connect`. */
  follow(delivery: Delivery, inFlight: InFlightTable): void {
    invariant(this.#delivery === undefined, 'one delivery gathers the answers')
    this.#delivery = delivery
    this.sends.inFlight = inFlight
    this.sends.cells = shareInFlight(this.#addon, this.#engine, inFlight)
  }

  /** Opens a listener. If that fails, throws UnavailableError, which names the remedy. */
  listen(options: UdpListen): UdpListener {
    invariant(this.#collector !== undefined, 'there is a batch to fill')
    return new UdpListener(this, this.replies, options)
  }

  /** Returns a socket that is bound to `port` and connected to one server, or the system's error code. 0: the kernel chooses a port. */
  connect(server: ServerAddress, port: number, owner: DatagramOwner): ConnectedSocket | string {
    const peer = parseAddress(server.address)?.octets
    if (peer === undefined) return 'EINVAL'
    const handle = this.open({
      family: server.family,
      flags: 0,
      octets: NOWHERE,
      port,
      peer,
      peerPort: server.port,
      receiveBuffer: ANSWERS_BUFFER,
    })
    if (handle < 0) return errnoName(handle)
    const socket = new ConnectedSocket(this, handle, owner)
    this.#connected[handle & HANDLE_PLACE] = socket
    return socket
  }

  /** Closes all sockets at once. */
  stop(): void {
    if (this.#stopped) return
    this.flush()
    this.#stopped = true
    this.#addon.stop(this.#engine)
  }

  open(spec: SocketSpec): number {
    const words = this.#spec
    writeSpec(words, spec, this.#mark, this.#sendBuffer)
    return this.#addon.socket(this.#engine, words, spec.octets, spec.peer ?? NOWHERE)
  }

  close(handle: number): void {
    if (this.#stopped) return
    const place = handle & HANDLE_PLACE
    if (this.#connected[place]?.handle === handle) this.#connected[place] = undefined
    this.#addon.close(this.#engine, handle)
  }

  portOf(handle: number): number {
    return this.#stopped ? 0 : this.#addon.port(this.#engine, handle)
  }

  readStats(handle: number, into: Float64Array): boolean {
    invariant(into.length >= STAT_WORDS, 'there is room for what is counted')
    return !this.#stopped && this.#addon.stats(this.#engine, handle, into) === 0
  }

  descriptorOf(handle: number): number {
    return this.#addon.descriptor(this.#engine, handle)
  }

  reading(handle: number, on: boolean): void {
    if (!this.#stopped) this.#addon.reading(this.#engine, handle, on ? 1 : 0)
  }

  prepare(length: number): void {
    if (!this.sends.hasRoom(length)) this.#send()
    if (this.sends.inTurn || this.#scheduled) return
    this.#scheduled = true
    this.#clock.soon(this.#runFlush)
  }

  /** Sends the waiting rows, and reports errors. */
  flush(): void {
    for (let i = 0; i < FLUSHES_MAX; i++) {
      this.#send()
      this.#reportErrors()
      if (this.sends.count === 0) return
    }
    if (this.#scheduled) return
    this.#scheduled = true
    this.#clock.soon(this.#runFlush)
  }

  #turn(): void {
    const { sends } = this
    if (this.#stopped) return
    this.flush()
    sends.inTurn = true
    this.#delivery?.hold(this.#answers.slab)
    try {
      for (let i = 0; i < ROUNDS_MAX && this.#round() > 0; i++);
    } finally {
      this.#delivery?.release()
      this.flush()
      sends.inTurn = false
      this.#time?.release()
    }
  }

  /** Reads and handles the datagrams that wait now, once. Returns their number. */
  #round(): number {
    if (this.#stopped) return 0
    this.#time?.hold()
    this.#addon.poll(this.#engine)
    const queries = this.#receiveQueries()
    const answers = this.#receiveAnswers()
    return queries + answers
  }

  #receiveQueries(): number {
    const collector = this.#collector
    if (collector === undefined) return 0
    const { batch } = collector
    const { store } = batch
    if (store.full) collector.flush()
    const room = store.capacity - store.count
    const { stride, pitch } = store
    const count = this.#addon.receiveQueries(this.#engine, store.count, room, pitch, stride)
    if (count > 0) batch.extend(count)
    if (store.count > 0) {
      collector.flush()
      this.flush()
    }
    return count
  }

  #receiveAnswers(): number {
    if (this.#stopped) return 0
    const { slab, handles, offsets, lengths } = this.#answers
    const count = this.#addon.receiveAnswers(this.#engine, ANSWER_STRIDE, ANSWER_OCTETS)
    for (let i = 0; i < count; i++) {
      const handle = handles[i]!
      const socket = this.#connected[handle & HANDLE_PLACE]
      // If the socket was closed, for example by an earlier answer of this batch, no query waits for this answer.
      if (socket?.handle !== handle) continue
      socket.owner.received(slab, offsets[i]!, lengths[i]!)
    }
    this.#reportErrors()
    this.#delivery?.deliver()
    this.flush()
    return count
  }

  #send(): void {
    const { sends } = this
    if (sends.count === 0 || this.#stopped) return
    this.turn++
    this.#addon.flush(this.#engine, sends.count)
    sends.clear()
  }

  /** Reports the kernel's errors to the owners of the sockets. */
  #reportErrors(): void {
    const count = this.#stopped ? 0 : this.#addon.takeReports(this.#engine)
    if (count === 0) return
    // The reports are copied, because owners can send again, and these sends can cause more reports.
    reportErrors(this.sends.reports.slice(0, count * REPORT_WORDS), this.#connected)
  }
}
