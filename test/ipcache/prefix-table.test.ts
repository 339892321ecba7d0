import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LengthsInUse } from '../../src/ipcache/prefix-table.ts'

test('LengthsInUse lists each length that a prefix has once, the longest first', () => {
  const step = fc.record({ length: fc.integer({ min: 0, max: 128 }), comes: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const lengths = new LengthsInUse()
      const there: number[] = []
      for (const { length, comes } of steps) {
        const at = there.indexOf(length)
        if (comes) there.push(length)
        else if (at >= 0) there.splice(at, 1)
        else continue
        lengths.count(length, comes ? 1 : -1)
        const expected = [...new Set(there)].sort((a, b) => b - a)
        assert.deepEqual(lengths.longestFirst, expected)
      }
    }),
  )
})
