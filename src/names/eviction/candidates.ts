// Which row goes first at a bound: the one with the smallest key of a heap whose keys may be too small, because what makes them
// grow (an answer, a minute ago) does not touch the heap. The top is looked at until its key is right, a few times at most: one
// eviction costs a few steps of a heap however many answers there were. Rows that the batch of answers at hand uses stay: they
// stand at the bottom of their heap until the batch is over.

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
    // All that were looked at were asked of late; the one on top has at least waited longest to be looked at.
    return heap.top !== 0 && keyOf(heap.top) < CONNECTED ? heap.top : 0
  }

  /** The batch is over: what it held may go. A key may be too small, never too large. */
  release(): void {
    for (const { heap, row } of this.#held) if (heap.has(row)) heap.set(row, 0)
    this.#held.length = 0
  }
}
