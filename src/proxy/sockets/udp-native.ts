// UDP on the addon's sockets. One engine has them all; when any has something to read the event loop calls `#turn`,
// in which the whole product happens: queries into the batch, admit, send; answers, settle, send. A turn has a
// bounded number of rounds, so timers and TCP get theirs.
//
// What is sent outside a turn (timers, TCP) leaves at the end of that turn of the event loop. News from the kernel
// (refusals, a full socket) are reported after a flush, never from inside `send`.

import type { Clock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { parseAddress } from '../../core/ip.ts'
import { invariant } from '../../core/invariant.ts'
import { errnoName } from '../../native/native.ts'
import {
  HANDLE_PLACE,
  NEWS_WORDS,
  SPEC_WORDS,
  STAT_WORDS,
  type UdpAddon,
} from '../../native/udp/udp.ts'
import type { BatchCollector } from '../messages/collector.ts'
import type {
  ConnectedSocket,
  DatagramOwner,
  Datagrams,
  TurnFollower,
  UdpListen,
  UdpListener,
} from './datagrams.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import {
  NativeConnected,
  NativeListener,
  type SocketEngine,
  tellNews,
  type SocketSpec,
  writeSpec,
} from './native-sockets.ts'
import { ReplySockets } from './reply-sockets.ts'
import { SendRows } from '../messages/send-rows.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'
import {
  ANSWER_OCTETS,
  ANSWER_STRIDE,
  AnswerCells,
  shareAnswers,
  shareInFlight,
  shareQueries,
  shareSends,
} from './shared-memory.ts'
import type { TurnClock } from '../turn-clock.ts'

export interface NativeDatagramsOptions {
  readonly addon: UdpAddon
  readonly clock: Clock
  /** Held through each round of a turn. */
  readonly time?: TurnClock | undefined
  /** SO_MARK of our own packets; 0: none. */
  readonly mark?: number
  /** `limits.reply-sockets`. */
  readonly replySockets?: number
  /** Octets asked of the kernel for what a socket sends; 0: its default. */
  readonly sendBuffer?: number
}

/** Rounds of one turn. */
const ROUNDS_MAX = 4
/** Flushes in a row, when what failed is sent elsewhere at once; the rest leaves with the next turn. */
const FLUSHES_MAX = 4
/** Octets asked of the kernel for each socket's answers. */
const ANSWERS_BUFFER = 1024 * 1024
const NOWHERE = new Uint8Array(16)
export class NativeDatagrams implements Datagrams, SocketEngine {
  readonly native = true
  readonly sends = new SendRows()
  readonly replies: ReplySockets
  /** Counts flushes. */
  turn = 0
  readonly counters = { turns: 0, rounds: 0 }
  readonly #addon: UdpAddon
  readonly #engine: object
  readonly #clock: Clock
  readonly #time: TurnClock | undefined
  readonly #mark: number
  readonly #sendBuffer: number
  readonly #spec = new Int32Array(SPEC_WORDS)
  readonly #answers = new AnswerCells()
  /** Connected sockets by the place in their handle. */
  readonly #connected: (NativeConnected | undefined)[] = []
  #collector: BatchCollector | undefined
  #follower: TurnFollower | undefined
  #scheduled = false
  #stopped = false
  readonly #runFlush = (): void => {
    this.#scheduled = false
    if (!this.#stopped) this.flush()
  }

  constructor(options: NativeDatagramsOptions) {
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

  fill(collector: BatchCollector): void {
    invariant(this.#collector === undefined, 'one collector takes the queries')
    this.#collector = collector
    this.sends.queries = collector.batch
    shareQueries(this.#addon, this.#engine, collector.batch)
  }

  follow(follower: TurnFollower, inFlight: InFlightTable): void {
    invariant(this.#follower === undefined, 'one follower gathers the answers')
    this.#follower = follower
    this.sends.inFlight = inFlight
    this.sends.cells = shareInFlight(this.#addon, this.#engine, inFlight)
  }

  listen(options: UdpListen): UdpListener {
    invariant(this.#collector !== undefined, 'there is a batch to fill')
    return new NativeListener(this, this.replies, options)
  }

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
    const socket = new NativeConnected(this, handle, owner)
    this.#connected[handle & HANDLE_PLACE] = socket
    return socket
  }

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

  /** Sends what waits, and tells what became of it. */
  flush(): void {
    for (let i = 0; i < FLUSHES_MAX; i++) {
      this.#send()
      this.#tell()
      if (this.sends.count === 0) return
    }
    if (this.#scheduled) return
    this.#scheduled = true
    this.#clock.soon(this.#runFlush)
  }

  #turn(): void {
    const { sends } = this
    if (this.#stopped) return
    this.counters.turns++
    this.flush()
    sends.inTurn = true
    this.#follower?.hold(this.#answers.slab)
    try {
      for (let i = 0; i < ROUNDS_MAX && this.#round() > 0; i++);
    } finally {
      this.#follower?.release()
      this.flush()
      sends.inTurn = false
      this.#time?.release()
    }
  }

  /** Everything that is there now, once; how many datagrams that was. */
  #round(): number {
    if (this.#stopped) return 0
    this.counters.rounds++
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
    if (batch.full) collector.flush()
    const room = batch.store.capacity - batch.count
    const { stride, pitch } = batch.store
    const count = this.#addon.receiveQueries(this.#engine, batch.count, room, pitch, stride)
    batch.extend(count)
    if (batch.count > 0) {
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
      // One that closed meanwhile, perhaps because of an answer before this one, waits for nothing.
      if (socket?.handle !== handle) continue
      socket.owner.received(slab, offsets[i]!, lengths[i]!)
    }
    this.#tell()
    this.#follower?.deliver()
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

  /** Tells owners what the kernel said of their sockets. */
  #tell(): void {
    const count = this.#stopped ? 0 : this.#addon.takeNews(this.#engine)
    if (count === 0) return
    // Copied, because what the owners send now may bring more.
    tellNews(this.sends.news.slice(0, count * NEWS_WORDS), this.#connected)
  }
}
