// Stream is one TCP connection of the addon, with a server or a client. It stores its slot in the engine and its chain of
// frames to send; the engine stores the rest. After the stream has closed, its methods do nothing. So a late answer cannot reach
// the next stream that uses the slot.
// A stream reports events through the four methods of StreamOwner, so a connection needs no closures. It never calls its owner while
// the owner calls the stream, and never after `destroy` or `closed`.

import type { TcpAddon } from '../../native/tcp/tcp.ts'
import { NO_FRAME, type FrameGather } from './frame-gather.ts'

/** The user of a stream. */
export interface StreamOwner {
  /** The octets source[offset, offset + length) arrived. They are valid during the call. */
  received(source: Uint8Array, offset: number, length: number): void
  /** The peer sent FIN: no more octets arrive. */
  ended(): void
  /** The kernel accepted octets that had waited. */
  taken(): void
  /** The stream was closed by an error, by the peer, or after `finish`. `fault`: true if an error closed it. */
  closed(fault: boolean): void
}

/** The part of Streams that its streams use. */
export interface StreamEngine {
  readonly addon: TcpAddon
  readonly handle: object
  readonly gather: FrameGather
  /** For each slot, the octets that the kernel has not accepted yet. */
  readonly unsent: Uint32Array
  /** Notes that the stream has gathered its first frame since its last flush. */
  joined(stream: Stream): void
  /** Notes that a stream has sent or dropped its frames. */
  left(): void
  /** Flushes every stream. */
  flushAll(): void
  /** Closes the stream's connection. `reset`: the peer gets RST. */
  release(stream: Stream, reset: boolean): void
  /** Schedules a turn, because the addon has rows to read for which the kernel reports no event. */
  wantTurn(): void
}

export class Stream {
  readonly slot: number
  /** Undefined while the stream is being accepted, and after it has closed. */
  owner: StreamOwner | undefined
  readonly #engine: StreamEngine
  #open: boolean
  #head = NO_FRAME
  #last = NO_FRAME
  /** Octets of the gathered frames. */
  #gathered = 0
  #finishing = false

  /** `slot` is negative if the connection could not be opened. */
  constructor(engine: StreamEngine, slot: number, owner: StreamOwner | undefined) {
    this.#engine = engine
    this.slot = slot
    this.owner = owner
    this.#open = slot >= 0
  }

  /** The number of octets that `flush` has sent and the kernel has not accepted yet. */
  get waiting(): number {
    return this.#open ? this.#engine.unsent[this.slot]! : 0
  }

  /** `waiting`, plus the octets of frames that no `flush` has sent yet. */
  get unsent(): number {
    return this.waiting + this.#gathered
  }

  /** Copies a frame of `length` octets (1..65,535) for the next `flush`, with `id` as the first two octets. */
  queue(octets: Uint8Array, offset: number, length: number, id: number): void {
    if (!this.#open) return
    const { gather } = this.#engine
    if (!gather.hasRoom(length)) this.#engine.flushAll()
    const frame = gather.add(octets, offset, length, id, this.#last)
    if (this.#head === NO_FRAME) {
      this.#head = frame
      this.#engine.joined(this)
    }
    this.#last = frame
    this.#gathered += length
  }

  /** Sends the queued frames in one write, so length and message are always together (RFC 7766 8). */
  flush(): void {
    if (this.#head === NO_FRAME) return
    const { addon, handle } = this.#engine
    // After an error, the addon has a row for this stream, which the next turn reads.
    if (addon.send(handle, this.slot, this.#head) < 0) this.#engine.wantTurn()
    this.#dropFrames()
  }

  /** Stops reading: the stream does not call `received` and `ended` until `resume`. */
  pause(): void {
    if (this.#open) this.#engine.addon.reading(this.#engine.handle, this.slot, 0)
  }

  resume(): void {
    if (!this.#open) return
    if (this.#engine.addon.reading(this.#engine.handle, this.slot, 1) > 0) this.#engine.wantTurn()
  }

  /** Sends unsent octets, then closes. Returns true if the stream is closed already; `closed` is not called in this case. */
  finish(): boolean {
    this.flush()
    if (!this.#open) return true
    this.#finishing = this.waiting > 0
    if (!this.#finishing) this.#close(false)
    return !this.#finishing
  }

  /** Closes at once. If there are unsent octets, they are lost and the peer gets RST. */
  destroy(): void {
    if (this.#open) this.#close(this.unsent > 0)
    this.owner = undefined
  }

  /** The connection's descriptor, for the successor. The stream keeps it. Undefined after the stream has closed. */
  get descriptor(): number | undefined {
    return this.#open
      ? this.#engine.addon.linkDescriptor(this.#engine.handle, this.slot)
      : undefined
  }

  /** Returns a copy of the `waiting` octets, which the successor sends. Call it after `flush`. */
  unsentOctets(): Uint8Array {
    const octets = new Uint8Array(this.waiting)
    if (this.#open) this.#engine.addon.unsentOctets(this.#engine.handle, this.slot, octets)
    return octets
  }

  /** Gives the connection up without an effect on the peer. The successor continues with its copy of the descriptor. */
  letGo(): void {
    if (this.#open) this.#close(false)
  }

  /** The engine calls it when the kernel has accepted waiting octets. */
  taken(): void {
    if (this.#finishing && this.waiting === 0) this.broken(false)
    else this.owner?.taken()
  }

  /** The engine calls it when the peer has closed the connection or an error has ended it. */
  broken(fault: boolean): void {
    const { owner } = this
    if (this.#open) this.#close(false)
    this.owner = undefined
    owner?.closed(fault)
  }

  #close(reset: boolean): void {
    this.#dropFrames()
    this.#open = false
    this.owner = undefined
    this.#engine.release(this, reset)
  }

  #dropFrames(): void {
    if (this.#head === NO_FRAME) return
    this.#head = this.#last = NO_FRAME
    this.#gathered = 0
    this.#engine.left()
  }
}
