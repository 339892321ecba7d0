// The running daemon's side of a take-over (docs/decisions/0019). It comes to rest, gives everything away but the wait for
// servers, and waits for the successor to be ready. From its word on it only passes on what servers answer, until
// nothing is in flight. When the successor is not ready in time it is ended, and a new daemon in this process starts over
// the same state with the same sockets: at no time do two write.

import type { Clock } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import type { DaemonServices } from '../daemon/services.ts'
import type { HandedOver } from './handing-over.ts'
import { formatAddress } from '../core/ip.ts'
import { Channel, type Message } from './channel.ts'
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
  READY_MAX_MS,
  REFUSED,
  type Given,
} from './wire.ts'
import { loadPosix } from '../native/native.ts'
import type { HandedQuery } from '../proxy/handed.ts'

export type GivingEnd =
  /** The successor goes on; nothing is left to do here. */
  | { readonly kind: 'gone' }
  /** It was not told anything, or refused before anything was given. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** It is no more; what was given is here again. */
  | {
      readonly kind: 'back'
      readonly reason: string
      readonly handed: HandedOver
      /** What ended meanwhile and from now on, called for each. */
      readonly hear: (onQuery: (handed: HandedQuery) => void) => void
    }

const NOTHING = Uint8Array.of(0)
const HELLO_MAX_MS = 2000
/** For a successor that was told to end. */
const END_MAX_MS = 1000

export interface GivingOptions {
  readonly clock: Clock
  /** Its own from now on. */
  readonly descriptor: number
  readonly supervisor: Given['supervisor']
  /** Milliseconds for what is in flight. */
  readonly inFlightMs: number
  /** The successor with this process id goes on from now. */
  readonly onGone: (pid: number) => void
}

export class Giving {
  readonly #to: GivingOptions
  readonly #channel: Channel
  readonly #wait: Wait
  readonly #kept: HandedQuery[] = []
  #hello: Message | undefined
  #isReady = false
  #isGone = false
  #ended = ''
  #onQuery: ((handed: HandedQuery) => void) | undefined

  constructor(options: GivingOptions) {
    const { clock, descriptor } = options
    this.#to = options
    this.#wait = new Wait(clock)
    this.#channel = new Channel({
      posix: loadPosix(),
      clock,
      descriptor,
      onMessage: (message) => this.#take(message),
      onEnd: (reason) => this.#end(reason),
    })
  }

  async run(services: DaemonServices): Promise<GivingEnd> {
    await this.#until(() => this.#hello !== undefined, HELLO_MAX_MS)
    const fault = this.#ended === '' ? this.#faultOf(services) : this.#ended
    if (fault !== undefined) return this.#refuse(fault)
    const began = this.#to.clock.now()
    let handed: HandedOver
    try {
      handed = await services.handOut((query) => this.#query(query))
    } catch (error) {
      return this.#refuse(messageOf(error))
    }
    const { octets, descriptors } = encodeGiven({ ...handed, supervisor: this.#to.supervisor })
    this.#channel.send(GIVEN, octets, descriptors)
    await this.#until(() => this.#isReady, began + READY_MAX_MS - this.#to.clock.now())
    // One that gave us up meanwhile must not be told to go on.
    if (!this.#isReady || this.#ended !== '') return await this.#takeBack(handed)
    this.#isGone = true
    // Before the word: from then on the way in is the successor's.
    this.#to.onGone(this.#channel.peer)
    this.#channel.send(GO, NOTHING)
    closeAll(handed)
    for (const query of this.#kept.splice(0)) this.#query(query)
    await this.#passOn(services)
    return { kind: 'gone' }
  }

  /** Passes on what servers still answer, until they have or may not any more. */
  async #passOn({ daemon }: DaemonServices): Promise<void> {
    const { inFlight } = daemon.proxy.upstream
    await this.#until(() => inFlight.count === 0, this.#to.inFlightMs)
    daemon.proxy.relay?.giveUp()
    this.#channel.send(DONE, NOTHING)
    await this.#until(() => this.#channel.isSent, END_MAX_MS)
    this.#channel.close()
  }

  async #takeBack(handed: HandedOver): Promise<GivingEnd> {
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

  /** Nothing is given. */
  #refuse(reason: string): GivingEnd {
    this.#sayNo(reason)
    return { kind: 'refused', reason }
  }

  /** Another successor has everything. */
  async turnAway(): Promise<void> {
    // A socket that is closed with something unread throws away what it has sent.
    await this.#until(() => this.#hello !== undefined, HELLO_MAX_MS)
    this.#sayNo(
      'the running daemon is busy with another successor: try again when that one serves or has failed',
    )
  }

  #sayNo(reason: string): void {
    if (this.#ended === '') this.#channel.send(REFUSED, encodeText({ reason }))
    this.#channel.close()
  }

  /** Why this successor gets nothing. */
  #faultOf({ daemon }: DaemonServices): string | undefined {
    const hello = this.#hello === undefined ? undefined : readHello(this.#hello)
    if (hello?.protocol !== PROTOCOL)
      return 'the running daemon is of a version that cannot hand over'
    const { bound } = daemon.proxy.listeners
    for (const { family, octets, port, mode } of bound) {
      const place = `${family} ${formatAddress(family, octets)}`
      const isWanted = [port, 0].some((each) =>
        hello.listeners.includes(`${place} ${each} ${mode}`),
      )
      if (!isWanted)
        return `no listener for ${place} port ${port} (${mode}), which the running daemon has`
    }
    return daemon.proxy.datagrams.native && daemon.proxy.streams.native
      ? undefined
      : 'the running daemon has no native sockets'
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

  /** Until it is so, or the other end is gone, or time is up. */
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

/** Our copies: the other one has its own. */
function closeAll({ listeners, connections, locks }: HandedOver): void {
  const posix = loadPosix()
  for (const { udp, tcp } of listeners) for (const fd of [udp, tcp]) posix.closeFd(fd)
  for (const { descriptor } of connections) posix.closeFd(descriptor)
  for (const lock of locks) posix.closeFd(lock)
}
