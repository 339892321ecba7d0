// Octets of the messages of one batch: small ones copied into a slab that is allocated once (one cell of
// `stride` octets each, touched only when used), bigger ones kept by reference. Whoever fills a batch
// (Node's sockets now, recvmmsg later) writes here; readers take octets(i), offsets[i], lengths[i].
// Entries are valid until the batch is cleared.

/** Cell size that holds every UDP message of SEMANTICS 6 (`limits.udp-message`). */
export const DEFAULT_STRIDE = 4096

export class OctetStore {
  readonly capacity: number
  readonly stride: number
  readonly slab: Uint8Array<ArrayBuffer>
  readonly offsets: Uint32Array
  readonly lengths: Uint32Array
  /** Messages that don't fit a cell, by entry. */
  readonly #external: (Uint8Array | undefined)[]

  constructor(capacity: number, stride: number) {
    this.capacity = capacity
    this.stride = stride
    this.slab = new Uint8Array(capacity * stride)
    this.offsets = new Uint32Array(capacity)
    this.lengths = new Uint32Array(capacity)
    this.#external = Array.from<Uint8Array | undefined>({ length: capacity })
  }

  /** The array that holds entry `index`; its message is `lengths[index]` octets from `offsets[index]`. */
  octets(index: number): Uint8Array {
    return this.#external[index] ?? this.slab
  }

  /** Copies `length` octets into the entry's cell; they must fit. */
  copy(index: number, source: Uint8Array, offset: number, length: number): void {
    const at = index * this.stride
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
    this.#external[index] = copyOf(source, offset, length)
    this.offsets[index] = 0
    this.lengths[index] = length
  }

  /** Drops the references of the first `count` entries. */
  clear(count: number): void {
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
