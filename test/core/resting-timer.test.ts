import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RestingTimer } from '../../src/core/resting-timer.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('RestingTimer runs while there is work, rests after it, and wakes again', () => {
  const clock = new FakeClock()
  const ran: number[] = []
  let left = 0
  const begun = clock.now()
  const timer = new RestingTimer(clock, 100, () => {
    ran.push(clock.now() - begun)
    return --left > 0
  })
  clock.advance(1000)
  assert.deepEqual([ran, timer.isResting], [[], true], 'it was not woken')
  left = 2
  timer.wake()
  timer.wake()
  clock.advance(1000)
  assert.deepEqual([ran, timer.isResting], [[1100, 1200], true])
  left = 1
  timer.wake()
  clock.advance(1000)
  assert.deepEqual(ran, [1100, 1200, 2100])
})

test('RestingTimer does not wake once it was stopped', () => {
  const clock = new FakeClock()
  let ran = 0
  const timer = new RestingTimer(clock, 100, () => ++ran > 0)
  timer.wake()
  timer.stop()
  timer.wake()
  clock.advance(1000)
  assert.equal(ran, 0)
})
