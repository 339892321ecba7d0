// The row that goes first at a bound, and the rows that must stay.
//
// `Candidates` takes the row with the smallest key of a heap. A key in the heap may be too small, because an answer makes the
// right key grow and does not touch the heap. So the row on top is checked until its key is right, a few times at most. One
// eviction costs a few steps of a heap, however many answers came before. Rows that the present batch of answers needs stay:
// they wait at the bottom of their heap until the batch is over.

import type { KeyHeap } from '../../core/tables/key-heap.ts'

/** Key of a row that must not go now. Larger than all others. */
export const HELD = 2 ** 31 - 1
/** Keys from here on: rows under an open connection. */
export const CONNECTED = 2 ** 30
/** Rows put right for one eviction, at most. */
const LOOKS_MAX = 64

export class Candidates {
  readonly #held: { readonly heap: KeyHeap; readonly row: number }[] = []

  /** The row to evict, 0 when none may go. `keyOf`: the right key of a row, HELD for one that must stay. */
  find(heap: KeyHeap, keyOf: (row: number) => number): number {
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      const row = heap.top
      if (row === 0 || heap.topKey === HELD) return 0
      const key = keyOf(row)
      if (key === heap.topKey) return row
      heap.set(row, key)
      if (key === HELD) this.#held.push({ heap, row })
    }
    // All rows checked were asked of late. The one on top has at least waited longest for a check.
    return heap.top !== 0 && keyOf(heap.top) < CONNECTED ? heap.top : 0
  }

  /** Ends the batch. The rows that it held may go again. A key may be too small, never too large. */
  release(): void {
    for (const { heap, row } of this.#held) if (heap.has(row)) heap.set(row, 0)
    this.#held.length = 0
  }
}

/**
 * The rows that the present batch of answers needs: what the batch taught stays until its answers are released. One octet a row. A
 * mark can seem set again 255 batches later; the row is then spared for that one batch.
 */
export class BatchMarks {
  readonly #marks: Uint8Array
  #batch = 1

  constructor(options: { readonly capacity: number }) {
    this.#marks = new Uint8Array(options.capacity + 1)
  }

  /** Begins the next batch, with no row marked. */
  begin(): void {
    this.#batch = (this.#batch % 255) + 1
  }

  mark(row: number): void {
    this.#marks[row] = this.#batch
  }

  /** Takes the mark from a row that is free now. */
  clear(row: number): void {
    this.#marks[row] = 0
  }

  has(row: number): boolean {
    return this.#marks[row] === this.#batch
  }
}
