// OctetArena stores short octet strings (names) in blocks of 1 MiB. A block is divided into cells of 16 octets, and a string takes one or
// more neighbouring cells. Freed cells are in lists, one list per number of cells, whose links are in the cells. A handle is the number
// of the string's first cell + 1, and 0 is no string. Up to 15 octets per string are unused. Blocks are reused, but never freed.

const BLOCK_OCTETS = 1 << 20
const CELL_OCTETS = 16
const CELLS_PER_BLOCK = BLOCK_OCTETS / CELL_OCTETS
/** A cell number shifted right by this is the number of its block. The packet path reads names, and a division there would be slow. */
const BLOCK_SHIFT = Math.log2(CELLS_PER_BLOCK)
const CELL_MASK = CELLS_PER_BLOCK - 1
const CLASSES = 16

export class OctetArena {
  readonly #blocks: Uint8Array[] = []
  readonly #views: Int32Array[] = []
  readonly #freeOfClass = new Int32Array(CLASSES + 1)
  #nextCell = 0

  /** Octets of all blocks. */
  get octets(): number {
    return this.#blocks.length * BLOCK_OCTETS
  }

  /** Stores `length` (1..255) octets. Returns their handle. */
  store(from: Uint8Array, offset: number, length: number): number {
    const cells = Math.ceil(length / CELL_OCTETS)
    const handle = this.#takeCells(cells)
    const block = this.blockOf(handle)
    const at = this.offsetOf(handle)
    for (let i = 0; i < length; i++) block[at + i] = from[offset + i]!
    return handle
  }

  /** Frees a handle that `store` returned. `length` must be the length that was stored. */
  free(handle: number, length: number): void {
    const cells = Math.ceil(length / CELL_OCTETS)
    const cell = handle - 1
    const view = this.#views[Math.floor(cell / CELLS_PER_BLOCK)]
    if (view !== undefined) view[(cell % CELLS_PER_BLOCK) * 4] = this.#freeOfClass[cells]!
    this.#freeOfClass[cells] = handle
  }

  /** Returns the block that has the octets of a handle at `offsetOf(handle)`. */
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
