// Frames of all native streams on their way out, in one slab: the two octets of length and the message, always
// together (RFC 7766 8). Frames of one stream are linked, so that the addon sends a turn's answers in one write
// though other streams' lie between. Empty again when every stream has sent its chain; nothing is allocated.

import { FRAME_WORDS } from '../../native/tcp/tcp.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** Octets gathered in one turn; 16 of the longest frames. */
const SLAB_OCTETS = 1 << 20
const FRAMES_MAX = 4096
const PREFIX = 2

export const NO_FRAME = -1

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
