// The queue of due times against a plain list.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DelayQueue } from '../../../src/proxy/upstream/delay-queue.ts'

const SLOTS = 8
const DELAY = 10

test('DelayQueue gives slots in the order and at the time a plain list would', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), slot: fc.nat(SLOTS - 1) }),
    fc.record({ kind: fc.constant('remove' as const), slot: fc.nat(SLOTS - 1) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(8) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new DelayQueue(SLOTS, [DELAY])
      let model: { slot: number; due: number }[] = []
      let now = 100
      for (const one of steps) {
        if (one.kind === 'pass') {
          now += one.ms
        } else {
          model = model.filter((entry) => entry.slot !== one.slot)
          if (one.kind === 'add') model.push({ slot: one.slot, due: now + DELAY })
          if (one.kind === 'add') queue.add(one.slot, now)
          else queue.remove(one.slot)
        }
        assert.equal(queue.nextDue, model[0]?.due ?? Infinity)
        const due = model.filter((entry) => entry.due <= now).map((entry) => entry.slot)
        const taken: number[] = []
        for (let slot = queue.takeDue(now); slot >= 0; slot = queue.takeDue(now)) taken.push(slot)
        assert.deepEqual(taken, due)
        model = model.filter((entry) => entry.due > now)
        for (let slot = 0; slot < SLOTS; slot++) {
          assert.equal(
            queue.has(slot),
            model.some((entry) => entry.slot === slot),
          )
        }
      }
    }),
  )
})
