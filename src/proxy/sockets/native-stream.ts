// NativeStream is one TCP connection of the addon, with a server or a client. It stores its slot in the engine and its chain of
// frames to send; the engine stores the rest. After the stream has closed, its methods do nothing. So a late answer cannot reach
// the next stream that uses the slot.

import { FRAME_WORDS, type TcpAddon } from '../../native/tcp/tcp.ts'
import { copyOctets } from '../messages/octet-store.ts'
import type { Stream, StreamOwner } from './streams.ts'

/** Octets of frames that can be gathered in one turn: 16 of the longest frames. */
const SLAB_OCTETS = 1 << 20
const FRAMES_MAX = 4096
const PREFIX = 2

export const NO_FRAME = -1

/** The part of NativeStreams that its streams use. */
export interface StreamEngine {
  readonly addon: TcpAddon
  readonly handle: object
  readonly gather: FrameGather
  /** For each slot, the octets that the kernel has not accepted yet. */
  readonly unsent: Uint32Array
  /** Notes that the stream has gathered its first frame since its last flush. */
  joined(stream: NativeStream): void
  /** Notes that a stream has sent or dropped its frames. */
  left(): void
  /** Flushes every stream. */
  flushAll(): void
  /** Closes the stream's connection. `reset`: the peer gets RST. */
  release(stream: NativeStream, reset: boolean): void
  /** Schedules a turn, because the addon has rows to read for which the kernel reports no event. */
  wantTurn(): void
}

export class NativeStream implements Stream {
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

  get waiting(): number {
    return this.#open ? this.#engine.unsent[this.slot]! : 0
  }

  get unsent(): number {
    return this.waiting + this.#gathered
  }

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

  flush(): void {
    if (this.#head === NO_FRAME) return
    const { addon, handle } = this.#engine
    // After an error, the addon has a row for this stream, which the next turn reads.
    if (addon.send(handle, this.slot, this.#head) < 0) this.#engine.wantTurn()
    this.#dropFrames()
  }

  pause(): void {
    if (this.#open) this.#engine.addon.reading(this.#engine.handle, this.slot, 0)
  }

  resume(): void {
    if (!this.#open) return
    if (this.#engine.addon.reading(this.#engine.handle, this.slot, 1) > 0) this.#engine.wantTurn()
  }

  finish(): boolean {
    this.flush()
    if (!this.#open) return true
    this.#finishing = this.waiting > 0
    if (!this.#finishing) this.#close(false)
    return !this.#finishing
  }

  destroy(): void {
    if (this.#open) this.#close(this.unsent > 0)
    this.owner = undefined
  }

  get descriptor(): number | undefined {
    return this.#open
      ? this.#engine.addon.linkDescriptor(this.#engine.handle, this.slot)
      : undefined
  }

  unsentOctets(): Uint8Array {
    const octets = new Uint8Array(this.waiting)
    if (this.#open) this.#engine.addon.unsentOctets(this.#engine.handle, this.slot, octets)
    return octets
  }

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

/**
 * FrameGather holds the frames that native streams will send, in one array. A frame is the two octets of length and the message,
 * always together (RFC 7766 8). The frames of one stream form a chain, so the addon sends them in one write, even if frames of
 * other streams are between them. When every stream has sent its chain, FrameGather is cleared. It allocates nothing per frame.
 */
export class FrameGather {
  readonly slab = new Uint8Array(SLAB_OCTETS)
  /** FRAME_WORDS words per frame: offset, length, next frame of the chain. */
  readonly frames = new Int32Array(FRAMES_MAX * FRAME_WORDS)
  #count = 0
  #end = 0

  /** Returns true if a message of `length` octets fits. Otherwise the gathered frames must be sent first. */
  hasRoom(length: number): boolean {
    return this.#count < FRAMES_MAX && this.#end + PREFIX + length <= SLAB_OCTETS
  }

  /** Adds a frame with `id` as the first two octets, after frame `last` of the same stream (or NO_FRAME). Returns its number. */
  add(octets: Uint8Array, offset: number, length: number, id: number, last: number): number {
    const { slab, frames } = this
    const at = this.#end
    slab[at] = length >> 8
    slab[at + 1] = length & 0xff
    copyOctets(octets, offset, slab, at + PREFIX, length)
    slab[at + PREFIX] = id >> 8
    slab[at + PREFIX + 1] = id & 0xff
    this.#end += PREFIX + length
    const frame = this.#count++
    frames[frame * FRAME_WORDS] = at
    frames[frame * FRAME_WORDS + 1] = PREFIX + length
    frames[frame * FRAME_WORDS + 2] = NO_FRAME
    if (last !== NO_FRAME) frames[last * FRAME_WORDS + 2] = frame
    return frame
  }

  /** Removes all frames. Call it when every chain was sent or dropped. */
  clear(): void {
    this.#count = 0
    this.#end = 0
  }
}
