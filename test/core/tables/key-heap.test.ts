import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { KeyHeap } from '../../../src/core/tables/key-heap.ts'

const ROWS = 40

test('KeyHeap has a row with the smallest key on top, whatever came, changed and went', () => {
  const step = fc.record({
    row: fc.integer({ min: 1, max: ROWS }),
    key: fc.integer(),
    go: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const place = new Int32Array(ROWS + 1)
      const heap = new KeyHeap(place)
      const keys = new Map<number, number>()
      for (const { row, key, go } of steps) {
        const key32 = key | 0
        if (!keys.has(row)) heap.add(row, key32)
        else if (go) heap.remove(row)
        else heap.set(row, key32)
        if (keys.has(row) && go) keys.delete(row)
        else keys.set(row, key32)
        assert.equal(heap.count, keys.size)
        assert.equal(heap.topKey, keys.size === 0 ? 0 : Math.min(...keys.values()))
        assert.equal(
          heap.top === 0 ? undefined : keys.get(heap.top),
          keys.size === 0 ? undefined : heap.topKey,
        )
        const rows = Array.from({ length: heap.count }, (_, i) => heap.at(i))
        assert.deepEqual(
          rows.sort((a, b) => a - b),
          [...keys.keys()].sort((a, b) => a - b),
        )
        for (let each = 1; each <= ROWS; each++)
          assert.equal((place[each] ?? 0) > 0, keys.has(each))
      }
    }),
    { numRuns: 300 },
  )
})
