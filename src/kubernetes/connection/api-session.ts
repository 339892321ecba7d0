// ApiSession is one HTTP/2 session with the API server. If nothing comes for three minutes it sends a ping, and without an answer it ends, so
// that its requests fail and can be sent again. After GOAWAY it takes no new requests, and the open ones can finish.

import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2'
import type { Clock, Timer } from '../../core/clock.ts'
import type { ConnectionCounts } from './connection-counts.ts'

/** A connection that is not made in this time counts as lost. */
export const CONNECT_MS = 10_000
/** After this time without an octet the server is asked for a sign of life. */
export const QUIET_MS = 180_000
export const PONG_MS = 10_000
const LOOK_MS = 15_000
/** How much a server can send before the reflector has read it. The default of 64 KiB slows lists down. */
const WINDOW = 2 ** 20

export class ApiSession {
  readonly #clock: Clock
  readonly #counts: ConnectionCounts
  readonly #session: ClientHttp2Session
  readonly #watch: Timer
  readonly #connecting: Timer
  #pong: Timer | undefined
  #heardAt: number
  #isLeaving = false

  constructor(
    origin: string,
    options: SecureClientSessionOptions,
    clock: Clock,
    counts: ConnectionCounts,
  ) {
    this.#clock = clock
    this.#counts = counts
    this.#heardAt = clock.now()
    counts.sessions++
    const settings = { enablePush: false, initialWindowSize: WINDOW }
    this.#session = connect(origin, { ...options, settings })
    this.#connecting = clock.after(CONNECT_MS, () => this.#end('no connection within 10 s'))
    this.#watch = clock.every(LOOK_MS, () => this.#look())
    this.#session.on('connect', () => {
      this.#connecting.cancel()
      // Node.js also reports the connection of a session that was destroyed meanwhile.
      if (!this.#session.destroyed) this.#session.setLocalWindowSize(WINDOW)
    })
    this.#session.on('goaway', () => {
      if (!this.#isLeaving) counts.goaways++ // Node.js can report one frame twice
      this.#isLeaving = true
    })
    this.#session.on('ping', () => this.heard())
    this.#session.on('error', () => undefined) // each request reports the error
    this.#session.on('close', () => this.#rest())
  }

  /** True if the session takes new requests. */
  get isUsable(): boolean {
    return !this.#isLeaving && !this.#session.closed && !this.#session.destroyed
  }

  /** True if the session has no requests any more. */
  get isOver(): boolean {
    return this.#session.destroyed
  }

  /** Throws if the session has ended in the meantime. */
  request(headers: OutgoingHttpHeaders, body?: string): ClientHttp2Stream {
    const stream = this.#session.request(headers, { endStream: body === undefined })
    if (body !== undefined) stream.end(body)
    return stream
  }

  /** Notes that something came. */
  heard(): void {
    this.#heardAt = this.#clock.now()
  }

  /** Ends all requests at once. */
  destroy(): void {
    this.#session.destroy()
  }

  #look(): void {
    if (
      this.isOver ||
      this.#session.closed ||
      this.#pong !== undefined ||
      this.#clock.now() - this.#heardAt < QUIET_MS
    )
      return
    this.#counts.pings++
    this.#pong = this.#clock.after(PONG_MS, () => {
      this.#counts.unanswered++
      this.#end('no answer to a ping within 10 s')
    })
    this.#session.ping((error) => {
      if (error !== null) return
      this.#pong?.cancel()
      this.#pong = undefined
      this.heard()
    })
  }

  #end(reason: string): void {
    this.#session.destroy(new Error(reason), constants.NGHTTP2_CANCEL)
  }

  #rest(): void {
    this.#connecting.cancel()
    this.#watch.cancel()
    this.#pong?.cancel()
  }
}
