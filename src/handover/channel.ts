// Channel carries messages between the running daemon and the successor over one local socket. A message has a kind, octets and
// descriptors. `send` never blocks: packets that the kernel does not accept are queued and tried again. A message takes one or
// more packets, so it can have any length up to LENGTH_MAX. Its descriptors travel with the first packets.

import type { Clock } from '../core/clock.ts'
import { errnoName, MESSAGE_FDS_MAX, type Posix } from '../native/native.ts'

export interface Message {
  readonly kind: number
  readonly octets: Uint8Array
  /** The receiver must close these descriptors. */
  readonly descriptors: readonly number[]
}

export interface ChannelOptions {
  readonly posix: Posix
  readonly clock: Clock
  /** The connected socket; Channel closes it. */
  readonly descriptor: number
  readonly onMessage: (message: Message) => void
  /** Called when the other side is gone or sent an unknown message. It is called once, and never after `close`. */
  readonly onEnd: (reason: string) => void
}

/** Octets of a packet. The first packet of a message begins with the message's kind, length and number of descriptors. */
const PACKET_OCTETS = 64 * 1024
const HEAD_OCTETS = 12
const LENGTH_MAX = 16 * 1024 * 1024
const AGAIN_MS = 1
const EAGAIN = -11
const EPIPE = -32
const ECONNRESET = -104
/** The other side closed the socket. */
export const ENDED = 'it ended'

interface Packet {
  readonly octets: Uint8Array
  readonly descriptors: Int32Array
}

interface Incoming {
  readonly kind: number
  readonly octets: Uint8Array
  readonly wanted: number
  filled: number
  readonly descriptors: number[]
}

export class Channel {
  readonly #options: ChannelOptions
  readonly #watch: object | number
  readonly #packet = Buffer.alloc(PACKET_OCTETS)
  readonly #descriptors = new Int32Array(MESSAGE_FDS_MAX + 1)
  readonly #waiting: Packet[] = []
  #incoming: Incoming | undefined
  #isTrying = false
  #isOpen = true

  constructor(options: ChannelOptions) {
    this.#options = options
    this.#watch = options.posix.linkWatch(options.descriptor, () => this.#receive(), 1)
  }

  /** True when the kernel has accepted everything that was sent. */
  get isSent(): boolean {
    return this.#waiting.length === 0
  }

  /** Process id of the other side, or 0 if the kernel does not report it. */
  get peer(): number {
    const found = this.#options.posix.localPeer(this.#options.descriptor)
    return typeof found === 'number' ? 0 : found[0]
  }

  /** Copies the octets. The descriptors must stay open until `isSent` is true. */
  send(kind: number, octets: Uint8Array, descriptors: readonly number[] = []): void {
    let sent = 0
    let given = 0
    let isFirst = true
    while (isFirst || sent < octets.length || given < descriptors.length) {
      const head = isFirst ? HEAD_OCTETS : 1
      const part = octets.subarray(sent, sent + PACKET_OCTETS - head)
      const fds = descriptors.slice(given, given + MESSAGE_FDS_MAX)
      const packet = Buffer.alloc(head + part.length)
      if (isFirst) {
        packet.writeUInt32LE(kind, 0)
        packet.writeUInt32LE(octets.length, 4)
        packet.writeUInt32LE(descriptors.length, 8)
      }
      packet.set(part, head)
      this.#waiting.push({ octets: packet, descriptors: Int32Array.from(fds) })
      sent += part.length
      given += fds.length
      isFirst = false
    }
    this.#push()
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { posix, descriptor } = this.#options
    if (typeof this.#watch === 'object') posix.linkUnwatch(this.#watch)
    posix.closeFd(descriptor)
  }

  #push(): void {
    const { posix, descriptor, clock } = this.#options
    for (let next = this.#waiting[0]; next !== undefined && this.#isOpen; next = this.#waiting[0]) {
      const { octets, descriptors } = next
      const result = posix.messageSend(descriptor, octets, descriptors, descriptors.length)
      if (result === EAGAIN) {
        if (this.#isTrying) return
        this.#isTrying = true
        clock.after(AGAIN_MS, () => {
          this.#isTrying = false
          this.#push()
        })
        return
      }
      if (result < 0) return this.#end(reasonOf(result))
      this.#waiting.shift()
    }
  }

  #receive(): void {
    const { posix, descriptor } = this.#options
    while (this.#isOpen) {
      const got = posix.messageReceive(descriptor, this.#packet, this.#descriptors)
      if (got === EAGAIN) return
      if (got <= 0) return this.#end(reasonOf(got))
      const message = this.#take(got)
      if (message === 'unknown') return this.#end('it speaks another language')
      if (message !== undefined) this.#options.onMessage(message)
    }
  }

  /** Returns the message that this packet completes, or undefined if more packets of the message follow. */
  #take(got: number): Message | 'unknown' | undefined {
    const packet = this.#packet
    const isFirst = this.#incoming === undefined
    if (isFirst && (got < HEAD_OCTETS || packet.readUInt32LE(4) > LENGTH_MAX)) return 'unknown'
    const incoming = (this.#incoming ??= {
      kind: packet.readUInt32LE(0),
      octets: new Uint8Array(packet.readUInt32LE(4)),
      wanted: packet.readUInt32LE(8),
      filled: 0,
      descriptors: [],
    })
    const head = isFirst ? HEAD_OCTETS : 1
    if (got - head > incoming.octets.length - incoming.filled) return 'unknown'
    incoming.octets.set(packet.subarray(head, got), incoming.filled)
    incoming.filled += got - head
    const count = this.#descriptors[0]!
    incoming.descriptors.push(...this.#descriptors.subarray(1, 1 + count))
    const isWhole = incoming.filled === incoming.octets.length
    if (!isWhole || incoming.descriptors.length < incoming.wanted) return undefined
    this.#incoming = undefined
    return incoming
  }

  #end(reason: string): void {
    if (!this.#isOpen) return
    this.close()
    this.#options.onEnd(reason)
  }
}

/** The reason for a result that is an error or the end of the stream. */
function reasonOf(result: number): string {
  const isOver = result === 0 || result === EPIPE || result === ECONNRESET
  return isOver ? ENDED : errnoName(result)
}
