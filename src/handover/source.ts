// HandoverSource is the running daemon's side of a take-over (docs/decisions/0019). It stops reading queries and sends its
// sockets, connections and locks to the successor. Then it waits until the successor is ready. If the successor is ready in time,
// the successor serves. The running daemon then only forwards to the successor the answers that DNS servers still send for
// queries in flight. If the successor is not ready in time, the running daemon kills it, and a new daemon in this process resumes
// with the same sockets and state. The two processes never write state at the same time.

import type { Clock } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import type { DaemonServices } from '../daemon/services.ts'
import type { HandedOver } from './handing-over.ts'
import { formatAddress } from '../core/ip.ts'
import { Channel, type Message } from './channel.ts'
import { processorTimeOf, StartLimit } from './start-limit.ts'
import { Wait } from './wait.ts'
import {
  decodeText,
  DONE,
  encodeGiven,
  encodeQuery,
  encodeText,
  GIVEN,
  GO,
  HELLO,
  PROTOCOL,
  QUERIES,
  READY,
  REFUSED,
  type Given,
} from './wire.ts'
import { loadPosix } from '../native/native.ts'
import type { HandedQuery } from '../proxy/handed.ts'

export type HandoverEnd =
  /** The successor serves; this process has nothing left to do. */
  | { readonly kind: 'gone' }
  /** The successor was refused before the running daemon handed anything over. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The successor failed; this process keeps its sockets, connections and locks. */
  | {
      readonly kind: 'back'
      readonly reason: string
      readonly handed: HandedOver
      /** Calls `onQuery` for each query that ended during the take-over, and for each query that ends later. */
      readonly hear: (onQuery: (handed: HandedQuery) => void) => void
    }

const NOTHING = Uint8Array.of(0)
const HELLO_MAX_MS = 2000
/** Milliseconds that a refused successor has to end. */
const END_MAX_MS = 1000

export interface HandoverSourceOptions {
  readonly clock: Clock
  /** The connection to the successor; HandoverSource closes it. */
  readonly descriptor: number
  readonly supervisor: Given['supervisor']
  /** Milliseconds to wait for queries in flight, after the successor serves. */
  readonly inFlightMs: number
  /** Called with the successor's process id, just before the successor may serve. */
  readonly onGone: (pid: number) => void
}

export class HandoverSource {
  readonly #options: HandoverSourceOptions
  readonly #channel: Channel
  readonly #wait: Wait
  readonly #kept: HandedQuery[] = []
  #hello: Message | undefined
  #isReady = false
  #isGone = false
  #ended = ''
  #onQuery: ((handed: HandedQuery) => void) | undefined

  constructor(options: HandoverSourceOptions) {
    const { clock, descriptor } = options
    this.#options = options
    this.#wait = new Wait(clock)
    this.#channel = new Channel({
      posix: loadPosix(),
      clock,
      descriptor,
      onMessage: (message) => this.#take(message),
      onEnd: (reason) => this.#end(reason),
    })
  }

  async run(services: DaemonServices): Promise<HandoverEnd> {
    await this.#until(() => this.#hello !== undefined, HELLO_MAX_MS)
    const fault = this.#ended === '' ? this.#faultOf(services) : this.#ended
    if (fault !== undefined) return this.#refuse(fault)
    let handed: HandedOver
    try {
      handed = await services.handOut((query) => this.#query(query))
    } catch (error) {
      return this.#refuse(messageOf(error))
    }
    const { octets, descriptors } = encodeGiven({ ...handed, supervisor: this.#options.supervisor })
    this.#channel.send(GIVEN, octets, descriptors)
    const limit = new StartLimit(this.#options.clock, () => processorTimeOf(this.#channel.peer))
    await this.#until(() => this.#isReady || limit.isOver, Infinity)
    // GO is never sent to a successor that has given up.
    if (!this.#isReady || this.#ended !== '') return await this.#takeBack(handed)
    this.#isGone = true
    // This call precedes GO because the connect socket belongs to the successor as soon as GO is sent.
    this.#options.onGone(this.#channel.peer)
    this.#channel.send(GO, NOTHING)
    closeAll(handed)
    for (const query of this.#kept.splice(0)) this.#query(query)
    await this.#passOn(services)
    return { kind: 'gone' }
  }

  /** Forwards to the successor what servers still answer, until no query is in flight or `inFlightMs` is over. */
  async #passOn({ daemon }: DaemonServices): Promise<void> {
    const { inFlight } = daemon.proxy.upstream
    await this.#until(() => inFlight.count === 0, this.#options.inFlightMs)
    daemon.proxy.relay?.giveUp()
    this.#channel.send(DONE, NOTHING)
    await this.#until(() => this.#channel.isSent, END_MAX_MS)
    this.#channel.close()
  }

  async #takeBack(handed: HandedOver): Promise<HandoverEnd> {
    const { peer } = this.#channel
    const reason =
      this.#ended === '' ? 'it was not ready in time' : `before it was ready ${this.#ended}`
    this.#channel.send(REFUSED, encodeText({ reason }))
    await this.#until(() => this.#ended !== '', END_MAX_MS)
    if (this.#ended === '') process.kill(peer, 'SIGKILL')
    await this.#until(() => this.#ended !== '', END_MAX_MS)
    this.#channel.close()
    const hear = (onQuery: (handed: HandedQuery) => void): void => {
      this.#onQuery = onQuery
      for (const query of this.#kept.splice(0)) onQuery(query)
    }
    return { kind: 'back', reason, handed, hear }
  }

  /** Sends the reason to the successor, and nothing else. */
  #refuse(reason: string): HandoverEnd {
    this.#sayNo(reason)
    return { kind: 'refused', reason }
  }

  /** Refuses a second successor while the first one takes over. */
  async turnAway(): Promise<void> {
    // If a socket is closed while it has unread data, the kernel discards what was sent on it. So HELLO is read first.
    await this.#until(() => this.#hello !== undefined, HELLO_MAX_MS)
    this.#sayNo(
      'the running daemon is busy with another successor: try again when that one serves or has failed',
    )
  }

  #sayNo(reason: string): void {
    if (this.#ended === '') this.#channel.send(REFUSED, encodeText({ reason }))
    this.#channel.close()
  }

  /** Returns why this successor is refused, or undefined if it is accepted. */
  #faultOf({ daemon }: DaemonServices): string | undefined {
    const hello = this.#hello === undefined ? undefined : readHello(this.#hello)
    if (hello?.protocol !== PROTOCOL)
      return 'the running daemon is a version with another take-over protocol'
    const { bound } = daemon.proxy.listeners
    for (const { family, octets, port, mode } of bound) {
      const place = `${family} ${formatAddress(family, octets)}`
      const isWanted = [port, 0].some((each) =>
        hello.listeners.includes(`${place} ${each} ${mode}`),
      )
      if (!isWanted)
        return `no listener for ${place} port ${port} (${mode}), but the running daemon has that listener`
    }
    return undefined
  }

  #query(query: HandedQuery): void {
    if (this.#onQuery !== undefined) this.#onQuery(query)
    else if (this.#isGone) this.#channel.send(QUERIES, encodeQuery(query))
    else this.#kept.push(query)
  }

  #take(message: Message): void {
    if (message.kind === HELLO) this.#hello = message
    if (message.kind === READY) this.#isReady = true
    this.#wait.wake()
  }

  #end(reason: string): void {
    this.#ended = reason
    this.#wait.wake()
  }

  /** Waits until `isSo` returns true or the successor ends, at most `ms`. After GO, the end of the successor is ignored. */
  async #until(isSo: () => boolean, ms: number): Promise<void> {
    await this.#wait.until(() => isSo() || (this.#ended !== '' && !this.#isGone), ms)
  }
}

function readHello({
  octets,
}: Message): { protocol: number; listeners: readonly string[] } | undefined {
  const value = decodeText(octets)
  if (typeof value !== 'object' || value === null) return undefined
  if (!('protocol' in value) || !('listeners' in value)) return undefined
  const { protocol, listeners } = value
  if (typeof protocol !== 'number' || !Array.isArray(listeners)) return undefined
  return { protocol, listeners: listeners.map(String) }
}

/** Closes this process's descriptors; the successor has its own copies. */
function closeAll({ listeners, connections, locks }: HandedOver): void {
  const posix = loadPosix()
  for (const { udp, tcp } of listeners) for (const fd of [udp, tcp]) posix.closeFd(fd)
  for (const { descriptor } of connections) posix.closeFd(descriptor)
  for (const lock of locks) posix.closeFd(lock)
}
