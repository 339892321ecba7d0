// Octets of the messages of one batch: small ones copied into a slab that is allocated once (one cell of
// `stride` octets each, touched only when used), bigger ones kept by reference. The filler of a batch
// (Node's sockets, or recvmmsg in the addon) writes here; readers take octets(i), offsets[i], lengths[i].
// Entries are valid until the batch is cleared.

import type { MessageView } from './message-view.ts'

/**
 * Octets between the ends of cells: with a stride of 4,096 alone, the first octets of all cells would fall into the same
 * set of a processor's cache.
 */
const GAP = 64

/** Cell size that holds every UDP message of docs/spec/semantics 6 (`limits.udp-message`). */
export const DEFAULT_STRIDE = 4096

export class OctetStore {
  readonly capacity: number
  /** Longest message that fits a cell. */
  readonly stride: number
  /** Octets from one cell to the next. */
  readonly pitch: number
  readonly slab: Uint8Array<ArrayBuffer>
  /** The slab by four octets; every cell begins with one. */
  readonly words: Uint32Array<ArrayBuffer>
  readonly offsets: Uint32Array
  readonly lengths: Uint32Array
  /** Messages that lie elsewhere, by entry. */
  readonly #external: (Uint8Array | undefined)[]
  #externals = 0

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

  /** The array that holds entry `index`; its message is `lengths[index]` octets from `offsets[index]`. */
  octets(index: number): Uint8Array {
    return this.#external[index] ?? this.slab
  }

  /** The message of an entry, put into a view. */
  view(index: number, into: MessageView): MessageView {
    return into.set(this.octets(index), this.offsets[index]!, this.lengths[index]!)
  }

  /** Copies `length` octets into the entry's cell; they must fit. */
  copy(index: number, source: Uint8Array, offset: number, length: number): void {
    const at = index * this.pitch
    copyOctets(source, offset, this.slab, at, length)
    this.offsets[index] = at
    this.lengths[index] = length
  }

  /** Keeps a message of any size: in its cell when it fits, else as a copy of its own. */
  keep(index: number, source: Uint8Array, offset: number, length: number): void {
    if (length <= this.stride) {
      this.copy(index, source, offset, length)
      return
    }
    this.refer(index, copyOf(source, offset, length), 0, length)
  }

  /** Keeps a message where it lies; its octets must hold until the batch is cleared. */
  refer(index: number, source: Uint8Array, offset: number, length: number): void {
    this.#external[index] = source
    this.#externals++
    this.offsets[index] = offset
    this.lengths[index] = length
  }

  /** Drops the references of the first `count` entries. */
  clear(count: number): void {
    if (this.#externals === 0) return
    this.#externals = 0
    for (let i = 0; i < count; i++) this.#external[i] = undefined
  }
}

/** Octets in memory of their own. (`slice` of a Buffer, unlike that of other arrays, is no copy.) */
export function copyOf(source: Uint8Array, offset: number, length: number): Uint8Array {
  const copy = new Uint8Array(length)
  copy.set(source.subarray(offset, offset + length))
  return copy
}

/** Below this a loop beats making a view for TypedArray.set. */
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
