// Short octet strings (names) packed in blocks of 1 MiB, by size class of 16 octets, each class with a
// free list threaded through the freed cells. A handle is cell number + 1; 0 is no string.
// Costs: up to 15 octets of waste a string; blocks are never given back, only reused.

const BLOCK_OCTETS = 1 << 20
const CELL_OCTETS = 16
const CELLS_PER_BLOCK = BLOCK_OCTETS / CELL_OCTETS
/** A cell's block is what stands above these bits of its number: reading is on the packet path, where division shows. */
const BLOCK_SHIFT = Math.log2(CELLS_PER_BLOCK)
const CELL_MASK = CELLS_PER_BLOCK - 1
const CLASSES = 16

export class OctetArena {
  readonly #blocks: Uint8Array[] = []
  readonly #views: Int32Array[] = []
  readonly #freeOfClass = new Int32Array(CLASSES + 1)
  #nextCell = 0

  /** Octets of blocks in use by the process. */
  get octets(): number {
    return this.#blocks.length * BLOCK_OCTETS
  }

  /** Stores `length` (1..255) octets and returns their handle. */
  store(from: Uint8Array, offset: number, length: number): number {
    const cells = Math.ceil(length / CELL_OCTETS)
    const handle = this.#takeCells(cells)
    const block = this.blockOf(handle)
    const at = this.offsetOf(handle)
    for (let i = 0; i < length; i++) block[at + i] = from[offset + i]!
    return handle
  }

  /** Frees what `store` returned, given the same length. */
  free(handle: number, length: number): void {
    const cells = Math.ceil(length / CELL_OCTETS)
    const cell = handle - 1
    const view = this.#views[Math.floor(cell / CELLS_PER_BLOCK)]
    if (view !== undefined) view[(cell % CELLS_PER_BLOCK) * 4] = this.#freeOfClass[cells]!
    this.#freeOfClass[cells] = handle
  }

  /** The block that holds a handle's octets, at `offsetOf(handle)`. */
  blockOf(handle: number): Uint8Array {
    const block = this.#blocks[(handle - 1) >>> BLOCK_SHIFT]
    if (block === undefined) throw new RangeError('Cannot read octets: unknown handle')
    return block
  }

  offsetOf(handle: number): number {
    return ((handle - 1) & CELL_MASK) * CELL_OCTETS
  }

  #takeCells(cells: number): number {
    const free = this.#freeOfClass[cells]!
    if (free !== 0) {
      const cell = free - 1
      const view = this.#views[Math.floor(cell / CELLS_PER_BLOCK)]
      this.#freeOfClass[cells] = view?.[(cell % CELLS_PER_BLOCK) * 4] ?? 0
      return free
    }
    const left = this.#blocks.length * CELLS_PER_BLOCK - this.#nextCell
    if (left < cells) {
      const octets = new Uint8Array(BLOCK_OCTETS)
      this.#nextCell = this.#blocks.length * CELLS_PER_BLOCK
      this.#blocks.push(octets)
      this.#views.push(new Int32Array(octets.buffer))
    }
    const handle = this.#nextCell + 1
    this.#nextCell += cells
    return handle
  }
}
