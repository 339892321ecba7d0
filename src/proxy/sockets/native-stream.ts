// One connection of the addon, ours or a client's. It knows its slot and its chain of gathered frames; the engine
// knows everything else. After it has closed every call does nothing, so a late answer can't reach the stream
// that has the slot next.

import type { TcpAddon } from '../../native/tcp/tcp.ts'
import { NO_FRAME, type FrameGather } from './frame-gather.ts'
import type { Stream, StreamOwner } from './streams.ts'

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
