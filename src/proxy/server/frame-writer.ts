// Frames for one TCP connection: the two octets of length and the message, always together
// (RFC 7766 8). Frames of one turn are gathered and leave in one write; memory that was given to a write is
// never written again, because the kernel may take it later.

import { copyOctets } from '../messages/octet-store.ts'

/** First size of a chunk; a busy connection's grow by doubling. */
const CHUNK_MIN = 1024
/** A bigger chunk isn't kept for the next turn: 4,096 connections hold at most 64 MiB so. */
const CHUNK_KEPT_MAX = 16 * 1024
/** Room left that is worth keeping. */
const ROOM_MIN = 256
const PREFIX = 2

export class FrameWriter {
  #chunk: Buffer | undefined
  /** Gathered octets are #chunk[#start, #end). */
  #start = 0
  #end = 0

  /** Octets gathered and not yet taken. */
  get pending(): number {
    return this.#end - this.#start
  }

  /** Adds a frame of `length` octets (1..65,535), with its first two octets replaced by `id`. */
  add(octets: Uint8Array, offset: number, length: number, id: number): void {
    const chunk = this.#room(PREFIX + length)
    const at = this.#end
    chunk[at] = length >> 8
    chunk[at + 1] = length & 0xff
    copyOctets(octets, offset, chunk, at + PREFIX, length)
    chunk[at + PREFIX] = id >> 8
    chunk[at + PREFIX + 1] = id & 0xff
    this.#end += PREFIX + length
  }

  /** Everything gathered, now the taker's own; undefined when there's nothing. */
  take(): Buffer | undefined {
    if (this.#chunk === undefined || this.pending === 0) return undefined
    const taken = this.#chunk.subarray(this.#start, this.#end)
    this.#start = this.#end
    const { length } = this.#chunk
    if (length - this.#end < ROOM_MIN || length > CHUNK_KEPT_MAX) this.#chunk = undefined
    return taken
  }

  #room(size: number): Buffer {
    if (this.#chunk !== undefined && this.#chunk.length - this.#end >= size) return this.#chunk
    const gathered = this.pending
    const chunk = Buffer.allocUnsafeSlow(Math.max(CHUNK_MIN, (gathered + size) * 2))
    if (this.#chunk !== undefined) this.#chunk.copy(chunk, 0, this.#start, this.#end)
    this.#chunk = chunk
    this.#start = 0
    this.#end = gathered
    return chunk
  }
}
