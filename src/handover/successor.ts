// Successor is the new process's side of a take-over (docs/decisions/0019). It asks the running daemon for its sockets,
// connections and locks, starts on the same state and kernel objects, and serves when the running daemon sends GO. Before GO it
// reads no query. So a start that fails loses no query: the running daemon serves again after the successor has ended.

import type { Clock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { formatAddress } from '../core/ip.ts'
import type { Config } from '../config/config.ts'
import { placesOfListener } from '../proxy/server/listener-places.ts'
import { Channel, ENDED, type Message } from './channel.ts'
import { connectToDaemon } from './connect.ts'
import { Wait } from './wait.ts'
import {
  decodeGiven,
  decodeQueries,
  decodeText,
  DONE,
  encodeText,
  GIVEN,
  GO,
  HELLO,
  PROTOCOL,
  QUERIES,
  READY,
  REPLY_MAX_MS,
  REFUSED,
  type Given,
  type Hello,
} from './wire.ts'
import { loadPosix } from '../native/native.ts'
import type { HandedQuery } from '../proxy/handed.ts'
import { VERSION } from '../version.ts'

const NOTHING = Uint8Array.of(0)
const NO_SERVER =
  'the running daemon has ended, or another successor has taken its place: try again with --take-over if a daemon serves now, and without --take-over if none serves'
/** Turns to wait: the rest of the current turn, whose events are already polled, and one whole turn. */
const TURNS = 2

export class Successor {
  readonly #clock: Clock
  readonly #channel: Channel
  readonly #wait: Wait
  #given: Given | undefined
  #isReady = false
  #mayGo = false
  #fault = ''
  #isDone = false
  #onQuery: ((handed: HandedQuery) => void) | undefined
  /** Queries that arrived before `hear` was called. */
  #early: HandedQuery[] = []

  /** Connects and sends HELLO. Throws UnavailableError if no daemon answers. */
  constructor(config: Config, clock: Clock) {
    const descriptor = connectToDaemon(config.admin.socket)
    this.#clock = clock
    this.#wait = new Wait(clock)
    this.#channel = new Channel({
      posix: loadPosix(),
      clock,
      descriptor,
      onMessage: (message) => this.#take(message),
      onEnd: (reason) => this.#fail(reason === ENDED ? NO_SERVER : reason),
    })
    const hello: Hello = { protocol: PROTOCOL, version: VERSION, listeners: placesOf(config) }
    this.#channel.send(HELLO, encodeText(hello))
  }

  /** Returns what the running daemon hands over. Rejects with UnavailableError if the running daemon refuses. */
  async given(): Promise<Given> {
    await this.#until(() => this.#given !== undefined)
    const given = this.#given
    if (given === undefined || this.#fault !== '') throw this.#failure()
    return given
  }

  /** Reports that this process is ready. Resolves when it may serve; rejects with UnavailableError if it must not serve. */
  async go(): Promise<void> {
    // First handle events, such as a signal, that arrived while the start kept the event loop busy.
    for (let i = 0; i < TURNS; i++) await new Promise<void>((turn) => this.#clock.soon(turn))
    if (this.#fault !== '') throw this.#failure()
    this.#isReady = true
    this.#channel.send(READY, NOTHING)
    await this.#until(() => this.#mayGo)
    if (!this.#mayGo) throw this.#failure()
  }

  /**
   * Ends the attempt: `given` and `go` reject. The running daemon serves again only after this process has ended, because two
   * processes must not write. After READY was sent, the running daemon decides, and this call does nothing.
   */
  giveUp(reason: string): void {
    if (!this.#isReady) this.#fail(`${reason}; the running daemon goes on`)
  }

  /**
   * Calls `onQuery` for each query that the running daemon read before the take-over and now hands over: with the answer or failure of the
   * query, or as a query that was not forwarded.
   */
  hear(onQuery: (handed: HandedQuery) => void): void {
    this.#onQuery = onQuery
    for (const handed of this.#early.splice(0)) onQuery(handed)
  }

  /** Waits until `isSo` is true. The take-over fails after REPLY_MAX_MS, or at once if the running daemon ends or refuses. */
  async #until(isSo: () => boolean): Promise<void> {
    const isOver = await this.#wait.until(() => isSo() || this.#fault !== '', REPLY_MAX_MS)
    if (!isOver) this.#fail(this.#silence())
  }

  #silence(): string {
    const { peer } = this.#channel
    const [who, end] = peer === 0 ? ['', 'kill it'] : [` (pid ${peer})`, `kill -KILL ${peer}`]
    const time = `${REPLY_MAX_MS / 1000} s`
    return `the running daemon${who} does not answer in ${time}: ${end}, then start without --take-over`
  }

  #take({ kind, octets, descriptors }: Message): void {
    if (kind === GIVEN) this.#given = decodeGiven(octets, descriptors)
    else if (kind === GO) this.#mayGo = true
    else if (kind === REFUSED) this.#fail(reasonIn(octets))
    else if (kind === DONE) this.#isDone = true
    else if (kind === QUERIES) {
      for (const handed of decodeQueries(octets)) {
        if (this.#onQuery === undefined) this.#early.push(handed)
        else this.#onQuery(handed)
      }
    }
    if (this.#isDone) this.#channel.close()
    this.#wait.wake()
  }

  #failure(): UnavailableError {
    return new UnavailableError(`Cannot take over: ${this.#fault}`)
  }

  #fail(reason: string): void {
    if (this.#fault === '') this.#fault = reason
    this.#wait.wake()
  }
}

function reasonIn(octets: Uint8Array): string {
  const value = decodeText(octets)
  const isText = typeof value === 'object' && value !== null && 'reason' in value
  return isText ? String(value.reason) : 'the running daemon refused without a reason'
}

/** Listeners as `4 127.0.0.1 53 explicit`. Port 0 means any port. */
export function placesOf({ listeners }: Config): readonly string[] {
  return listeners.flatMap((listener) =>
    placesOfListener(listener).map(({ family, octets }) =>
      [family, formatAddress(family, octets), listener.port, listener.mode].join(' '),
    ),
  )
}
