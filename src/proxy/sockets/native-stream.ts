// One connection of the addon, ours or a client's. It knows its slot and its chain of gathered frames; the engine
// knows everything else. After it has closed every call does nothing, so a late answer can't reach the stream
// that has the slot next.

import { FRAME_WORDS, type TcpAddon } from '../../native/tcp/tcp.ts'
import { copyOctets } from '../messages/octet-store.ts'
import type { Stream, StreamOwner } from './streams.ts'

/** Octets gathered in one turn; 16 of the longest frames. */
const SLAB_OCTETS = 1 << 20
const FRAMES_MAX = 4096
const PREFIX = 2

export const NO_FRAME = -1

/** What a stream needs of its engine. */
export interface StreamEngine {
  readonly addon: TcpAddon
  readonly handle: object
  readonly gather: FrameGather
  /** By slot. */
  readonly unsent: Uint32Array
  /** The stream has its first frame since it last flushed. */
  joined(stream: NativeStream): void
  /** It has sent or dropped its frames. */
  left(): void
  /** Every stream sends its frames now. */
  flushAll(): void
  /** The stream is closed; `reset`: the peer gets RST. */
  release(stream: NativeStream, reset: boolean): void
  /** There are rows that no event of the kernel announces. */
  wantTurn(): void
}

export class NativeStream implements Stream {
  readonly slot: number
  /** Undefined while it is being accepted, and after it has closed. */
  owner: StreamOwner | undefined
  readonly #engine: StreamEngine
  #open: boolean
  #head = NO_FRAME
  #last = NO_FRAME
  /** Octets of the frames gathered. */
  #gathered = 0
  #finishing = false

  /** `slot` is negative when it could not be opened. */
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
    // After a fault the next turn has a row for it.
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

  /** The kernel took octets that had waited. */
  taken(): void {
    if (this.#finishing && this.waiting === 0) this.broken(false)
    else this.owner?.taken()
  }

  /** It is over, by the peer or an error. */
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
 * Frames of all native streams on their way out, in one slab: the two octets of length and the message, always
 * together (RFC 7766 8). Frames of one stream are linked, so that the addon sends a turn's answers in one write though
 * frames of other streams lie between. Empty again when every stream has sent its chain; nothing is allocated.
 */
export class FrameGather {
  readonly slab = new Uint8Array(SLAB_OCTETS)
  /** FRAME_WORDS each. */
  readonly frames = new Int32Array(FRAMES_MAX * FRAME_WORDS)
  #count = 0
  #end = 0

  /** Whether a message of `length` octets fits; if not, what is gathered must be sent first. */
  hasRoom(length: number): boolean {
    return this.#count < FRAMES_MAX && this.#end + PREFIX + length <= SLAB_OCTETS
  }

  /** Adds a frame with its first two octets replaced by `id`, behind frame `last` of the same stream or NO_FRAME. Its number. */
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

  /** Every chain was sent or dropped. */
  clear(): void {
    this.#count = 0
    this.#end = 0
  }
}
