// `Candidates` selects the row that eviction removes at a bound. `BatchMarks` marks the rows that eviction must not remove.
//
// `Candidates` takes the row with the smallest key of a heap. A key in the heap can be too small, because an answer increases the real key
// of a row without touching the heap. Therefore `Candidates` corrects the key of the top row, and looks at the new top, until the key of
// the top row is right. One eviction costs a bounded number of steps of a heap, however many answers came before. Rows that the present
// batch of answers needs get the key HELD, which keeps them at the bottom of the heap until the batch is over.

import { uint8Column } from '../../core/tables/columns.ts'
import type { KeyHeap } from '../../core/tables/key-heap.ts'

/** Key of a row that must not be removed now. It is larger than all other keys. */
export const HELD = 2 ** 31 - 1
/** Keys of this size or more, except HELD, belong to rows with an open connection. */
export const CONNECTED = 2 ** 30
/** `Candidates` corrects the keys of this many rows for one eviction at most. */
const LOOKS_MAX = 64

export class Candidates {
  readonly #held: { readonly heap: KeyHeap; readonly row: number }[] = []

  /** Returns the row to evict, or 0 when no row can be removed. `keyOf` returns the real key of a row, or HELD for a row that must stay. */
  find(heap: KeyHeap, keyOf: (row: number) => number): number {
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      const row = heap.top
      if (row === 0 || heap.topKey === HELD) return 0
      const key = keyOf(row)
      if (key === heap.topKey) return row
      heap.set(row, key)
      if (key === HELD) this.#held.push({ heap, row })
    }
    // All corrected rows were in recent answers. The row on top has waited longest for a correction, so it is evicted.
    return heap.top !== 0 && keyOf(heap.top) < CONNECTED ? heap.top : 0
  }

  /** Ends the batch: rows with the key HELD can be removed again. They get the key 0, because a key can be too small, never too large. */
  release(): void {
    for (const { heap, row } of this.#held) if (heap.has(row)) heap.set(row, 0)
    this.#held.length = 0
  }
}

/**
 * Marks the rows that the present batch of answers needs. Eviction leaves them until the answers of the batch are released. One octet
 * per row. An old mark looks set again 255 batches later. Eviction then spares the row for that one batch.
 */
export class BatchMarks {
  readonly #marks: Uint8Array
  #batch = 1

  constructor(options: { readonly capacity: number }) {
    this.#marks = uint8Column(options.capacity + 1)
  }

  /** Begins the next batch, with no row marked. */
  begin(): void {
    this.#batch = (this.#batch % 255) + 1
  }

  mark(row: number): void {
    this.#marks[row] = this.#batch
  }

  /** Removes the mark of a row that was freed. */
  clear(row: number): void {
    this.#marks[row] = 0
  }

  has(row: number): boolean {
    return this.#marks[row] === this.#batch
  }
}
