import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Slots } from '../../../src/core/tables/slots.ts'

test('Slots gives each row once, refuses at its capacity and reuses freed rows', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 120 }), (steps) => {
      const slots = new Slots(5)
      const used: number[] = []
      for (const step of steps) {
        if (step < 6) {
          const row = slots.take()
          if (used.length === 5) assert.equal(row, 0, 'full')
          else assert.ok(row >= 1 && row <= 5 && !used.includes(row), 'a free row')
          if (row !== 0) used.push(row)
        } else if (used.length > 0) {
          slots.free(used.splice(step % used.length, 1)[0] ?? 0)
        }
        assert.equal(slots.used, used.length)
        assert.ok(used.every((row) => row <= slots.high))
      }
    }),
  )
})

test('Slots gives the row freed last first, and reports rows that were never given', () => {
  const slots = new Slots(3)
  assert.deepEqual([slots.take(), slots.take()], [1, 2])
  slots.free(1)
  slots.free(2)
  assert.deepEqual([slots.take(), slots.take(), slots.take(), slots.take()], [2, 1, 3, 0])
  assert.throws(() => slots.free(4), /handed out before/)
  assert.throws(() => slots.free(0), /handed out before/)
})
