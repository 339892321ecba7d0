// FrameReader finds DNS messages in a byte stream: two octets of length, then the message (RFC 1035 4.2.2, RFC 7766 8). The stream
// arrives in chunks that can end anywhere. A message that is whole in one chunk is not copied.
//
// The owner calls `push` with a chunk, then `next` until it returns false. After each true, `buffer`, `offset` and `length` describe
// one message, until the next call. To stop reading (too many queries in flight), the owner stops calling `next` and calls `hold`,
// which copies the remaining octets. Memory: only octets that have arrived and were not read, and not the octets that a length
// announces. It is at most 65,537 octets and the last chunk, if the owner pushes no second chunk before `next` has returned false.

import { MESSAGE_OCTETS_MAX, putU16, u16 } from './wire.ts'

/** Octets of length before each message. */
export const FRAME_HEAD_OCTETS = 2
const STORE_OCTETS_MIN = 512

const EMPTY = new Uint8Array(0)

export class FrameReader {
  /** The array that contains the message that `next` found. */
  buffer: Uint8Array = EMPTY
  offset = 0
  /** Length of this message, 0..65,535. With fewer than 12 octets it is no DNS message, which the owner must check. */
  length = 0
  /** The octets that were not read: #chunk[#at..#end), or #store[#at..#end) if `#stored`. */
  #chunk: Uint8Array = EMPTY
  #store: Uint8Array = EMPTY
  #at = 0
  #end = 0
  #stored = false

  /** The number of octets that have arrived and belong to no message that `next` found. */
  get pending(): number {
    return this.#end - this.#at
  }

  /** Adds the next octets of the stream, chunk[from, to). They must not change until `next` returns false or `hold` is called. */
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

  /** Copies the octets that were not read. After this call the last chunk can change. */
  hold(): void {
    if (!this.#stored) this.#rest()
  }

  /** Returns a copy of the octets that were not read. */
  rest(): Uint8Array {
    const source = this.#stored ? this.#store : this.#chunk
    return source.slice(this.#at, this.#end)
  }

  /** Finds the next whole message. Returns false if there is none; then the reader no longer refers to the last chunk. */
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

  /** Drops the reference to the chunk, and the store too if no octets are pending. */
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

  /** Moves the pending octets to the front of the store, with room for `more` octets after them. */
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

/** Returns a size of the store, a power of two. A message that arrives octet by octet costs at most twice its size in copies. */
function roomFor(octets: number): number {
  let room = STORE_OCTETS_MIN
  while (room < octets) room *= 2
  return room
}

/** Writes length and message at `at`, for one write (T5). Returns the number of written octets. */
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
