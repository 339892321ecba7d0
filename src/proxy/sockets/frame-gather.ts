// FrameGather holds the frames that streams will send, in one array. A frame is the two octets of length and the message, always
// together (RFC 7766 8). The frames of one stream form a chain, so the addon sends them in one write, even if frames of other streams
// are between them. When every stream has sent its chain, FrameGather is cleared. It allocates nothing per frame.

import { FRAME_WORDS } from '../../native/tcp/tcp.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** Octets of frames that can be gathered in one turn: 16 of the longest frames. */
const SLAB_OCTETS = 1 << 20
const FRAMES_MAX = 4096
const PREFIX = 2

export const NO_FRAME = -1

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
