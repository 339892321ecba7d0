// One timer for all due times.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DueTimer } from '../../../src/proxy/upstream/due-timer.ts'
import { FakeClock } from '../../support/fake-clock.ts'

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

test('DueTimer isn’t put off by due times that come nearer than a tick', () => {
  const clock = new FakeClock(1000)
  const fired: number[] = []
  const timer = new DueTimer(clock, () => fired.push(clock.now()))
  for (let i = 0; i < 8; i++) {
    timer.arm(clock.now(), clock.now() + 1)
    clock.advance(5)
  }
  assert.deepEqual(fired, [1010, 1020, 1030, 1040])
})

test('DueTimer gives one tick to read what came when the event loop was held up', () => {
  // Timers of this clock fire late by as much as the test says.
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
  assert.deepEqual(fired, [], 'held up: what is to be read comes first')
  fake.advance(5)
  assert.deepEqual(fired, [1110], 'one tick, not for ever')
})
