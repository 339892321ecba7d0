// The queue of due times compared with a plain list, and the one timer for all due times.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DelayQueue, DueTimer } from '../../../src/proxy/upstream/due.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const SLOTS = 8
const DELAY = 10

test('DelayQueue returns slots in the order and at the time of a plain list', () => {
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

test('DueTimer fires for the first due time, no sooner than a tick, once', () => {
  const clock = new FakeClock(1000)
  const fired: number[] = []
  const timer = new DueTimer(clock, () => fired.push(clock.now()))
  timer.arm(1000, 1500)
  timer.arm(1000, 1200)
  timer.arm(1000, 1300)
  clock.advance(1000)
  timer.arm(2000, 2001)
  clock.advance(100)
  timer.arm(2100, 2200)
  timer.stop()
  clock.advance(500)
  assert.deepEqual(fired, [1200, 2010])
})

test('DueTimer is not delayed by due times that are nearer than a tick', () => {
  const clock = new FakeClock(1000)
  const fired: number[] = []
  const timer = new DueTimer(clock, () => fired.push(clock.now()))
  for (let i = 0; i < 8; i++) {
    timer.arm(clock.now(), clock.now() + 1)
    clock.advance(5)
  }
  assert.deepEqual(fired, [1010, 1020, 1030, 1040])
})

test('DueTimer leaves one tick to read messages after the event loop was held up', () => {
  // Timers of this clock fire late by this time.
  let heldUp = 0
  const fake = new FakeClock(1000)
  const clock = {
    now: () => fake.now() + heldUp,
    wall: () => 0,
    after: (ms: number, run: () => void) => fake.after(ms, run),
    every: (ms: number, run: () => void) => fake.every(ms, run),
    soon: (run: () => void) => fake.soon(run),
  }
  const fired: number[] = []
  const timer = new DueTimer(clock, () => fired.push(fake.now()))
  timer.arm(1000, 1100)
  heldUp = 50
  fake.advance(105)
  assert.deepEqual(fired, [], 'held up: messages are read first')
  fake.advance(5)
  assert.deepEqual(fired, [1110], 'one tick, not more')
})
