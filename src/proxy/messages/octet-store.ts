// OctetStore holds the octets of the messages of one batch. A message that fits is copied into a cell of `stride` octets in one
// large array, the slab, which is allocated once. A longer message is kept by reference. recvmmsg in the native part
// fills the store with datagrams. Readers point a view at a message. A message stays valid until the batch is cleared.

import type { MessageView } from '../../dns/message-view.ts'

/** Octets between two cells. With cells of exactly 4,096 octets, the starts of all cells would share one set of the processor's cache. */
const GAP = 64

/** The default of `limits.udp-message` in octets (docs/spec/semantics 6): every UDP message up to this length fits a cell. */
export const DEFAULT_STRIDE = 4096

export class OctetStore {
  readonly capacity: number
  /** Length of the longest message that fits a cell, in octets. */
  readonly stride: number
  /** Octets from the start of one cell to the start of the next. */
  readonly pitch: number
  readonly slab: Uint8Array<ArrayBuffer>
  /** The memory of `slab` as 32-bit words. Every cell starts at a word. */
  readonly words: Uint32Array<ArrayBuffer>
  readonly offsets: Uint32Array
  readonly lengths: Uint32Array
  /** The arrays of messages that are kept by reference, by message index. */
  readonly #external: (Uint8Array | undefined)[]
  #externals = 0
  /** The number of messages. */
  count = 0

  constructor(capacity: number, stride: number) {
    this.capacity = capacity
    this.stride = stride
    this.pitch = ((stride + 3) & ~3) + GAP
    this.slab = new Uint8Array(capacity * this.pitch)
    this.words = new Uint32Array(this.slab.buffer)
    this.offsets = new Uint32Array(capacity)
    this.lengths = new Uint32Array(capacity)
    this.#external = Array.from<Uint8Array | undefined>({ length: capacity })
  }

  get full(): boolean {
    return this.count === this.capacity
  }

  /** Points the view `into` at message `index`, and returns the view. */
  view(index: number, into: MessageView): MessageView {
    const octets = this.#external[index] ?? this.slab
    return into.set(octets, this.offsets[index]!, this.lengths[index]!)
  }

  /** Stores a message of any size: in its cell if it fits, otherwise as a separate copy. */
  keep(index: number, message: MessageView): void {
    const { octets, offset, length } = message
    if (length > this.stride) return this.#refer(index, message.copy(), 0, length)
    const at = index * this.pitch
    copyOctets(octets, offset, this.slab, at, length)
    this.offsets[index] = at
    this.lengths[index] = length
  }

  /** Stores a reference to a message. Its octets must stay valid until the batch is cleared. */
  refer(index: number, { octets, offset, length }: MessageView): void {
    this.#refer(index, octets, offset, length)
  }

  #refer(index: number, octets: Uint8Array, offset: number, length: number): void {
    this.#external[index] = octets
    this.#externals++
    this.offsets[index] = offset
    this.lengths[index] = length
  }

  /** Removes all messages and references. */
  clear(): void {
    if (this.#externals > 0) this.#external.fill(undefined, 0, this.count)
    this.#externals = 0
    this.count = 0
  }
}

/** Up to this length a loop is faster than making a view for TypedArray.set. */
const LOOP_COPY_MAX = 64

export function copyOctets(
  source: Uint8Array,
  sourceOffset: number,
  target: Uint8Array,
  targetOffset: number,
  length: number,
): void {
  if (length <= LOOP_COPY_MAX) {
    for (let i = 0; i < length; i++) target[targetOffset + i] = source[sourceOffset + i]!
    return
  }
  const whole = sourceOffset === 0 && length === source.length
  target.set(whole ? source : source.subarray(sourceOffset, sourceOffset + length), targetOffset)
}
