// DNS over a byte stream: two octets of length, then the message (RFC 1035 4.2.2, RFC 7766 8). The reader takes
// chunks cut anywhere and hands out whole messages; a message that lies whole in one chunk is not copied.
//
// The owner calls `push` with a chunk, then `next` until it says false; each true describes one message by
// `buffer`, `offset` and `length`, valid until the following call. To stop reading (too many queries in flight)
// the owner stops calling `next`; the rest waits, and `hold` copies it. Memory: what has arrived and
// was not handed out, never what a length merely announces; at most 65,537 octets and the last chunk, as long
// as the owner pushes no second chunk before `next` said false.

import { MESSAGE_OCTETS_MAX, putU16, u16 } from './wire.ts'

/** Octets of length before each message. */
export const FRAME_HEAD_OCTETS = 2
const STORE_OCTETS_MIN = 512

const EMPTY = new Uint8Array(0)

export class FrameReader {
  /** Where the message lies that `next` found. */
  buffer: Uint8Array = EMPTY
  offset = 0
  /** Octets of that message, 0..65,535; less than 12 is no DNS message, which is for the owner to judge. */
  length = 0
  /** Octets that came and were not handed out: chunk[#at..], or store[#at..#filled) when `#stored`. */
  #chunk: Uint8Array = EMPTY
  #store: Uint8Array = EMPTY
  #at = 0
  #end = 0
  #stored = false

  /** Octets that have come and belong to no message handed out. */
  get pending(): number {
    return this.#end - this.#at
  }

  /** Takes the next octets of the stream, chunk[from, to); they must stay as they are until `next` says false or `hold`. */
  push(chunk: Uint8Array, from = 0, to = chunk.length): void {
    if (this.pending === 0) {
      this.#chunk = chunk
      this.#at = from
      this.#end = to
      this.#stored = false
      return
    }
    this.#keep(to - from)
    this.#store.set(from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to), this.#end)
    this.#end += to - from
  }

  /** Copies what was not handed out, so that the last chunk may change before `next` says false. */
  hold(): void {
    if (!this.#stored) this.#rest()
  }

  /** A copy of what was not handed out. */
  rest(): Uint8Array {
    const source = this.#stored ? this.#store : this.#chunk
    return source.slice(this.#at, this.#end)
  }

  /** Finds the next whole message. After false nothing refers to the last chunk. */
  next(): boolean {
    const source = this.#stored ? this.#store : this.#chunk
    const pending = this.pending
    const size = pending < FRAME_HEAD_OCTETS ? MESSAGE_OCTETS_MAX : u16(source, this.#at)
    if (pending < FRAME_HEAD_OCTETS + size) {
      this.#rest()
      return false
    }
    this.buffer = source
    this.offset = this.#at + FRAME_HEAD_OCTETS
    this.length = size
    this.#at += FRAME_HEAD_OCTETS + size
    return true
  }

  /** Lets go of the chunk, and of the store when nothing is pending. */
  #rest(): void {
    if (this.pending > 0) {
      this.#keep(0)
    } else {
      this.#chunk = this.#store = EMPTY
      this.#at = this.#end = 0
      this.#stored = false
    }
    this.buffer = EMPTY
    this.offset = this.length = 0
  }

  /** Moves what is pending to the front of the store, with room for `more` octets behind it. */
  #keep(more: number): void {
    const source = this.#stored ? this.#store : this.#chunk
    const pending = this.pending
    const needed = pending + more
    const small = this.#store.length < needed
    const target = small ? new Uint8Array(roomFor(needed)) : this.#store
    if (target !== source || this.#at !== 0) target.set(source.subarray(this.#at, this.#end))
    this.#store = target
    this.#chunk = EMPTY
    this.#at = 0
    this.#end = pending
    this.#stored = true
  }
}

/** Doubling, so that a message that comes octet by octet costs no more than twice its size in copies. */
function roomFor(octets: number): number {
  let room = STORE_OCTETS_MIN
  while (room < octets) room *= 2
  return room
}

/** Writes length and message at `at`, to go out in one write (T5); returns the octets written. */
export function writeFrame(
  out: Uint8Array,
  at: number,
  message: Uint8Array,
  offset: number,
  length: number,
): number {
  putU16(out, at, length)
  out.set(message.subarray(offset, offset + length), at + FRAME_HEAD_OCTETS)
  return FRAME_HEAD_OCTETS + length
}
