import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnClock } from '../../src/core/clock.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('TurnClock stands still while it is held, and follows the time otherwise', () => {
  const time = new FakeClock()
  const clock = new TurnClock(time)
  const began = time.now()
  const wall = time.wall()
  const elapsed = () => [clock.now() - began, clock.wall() - wall]
  time.advance(5)
  assert.deepEqual(elapsed(), [5, 5])
  clock.hold()
  time.advance(5)
  assert.deepEqual(elapsed(), [5, 5])
  clock.hold()
  assert.deepEqual(elapsed(), [10, 10], 'the next round of a turn')
  time.advance(5)
  clock.release()
  assert.deepEqual(elapsed(), [15, 15])
})

test('TurnClock passes timers on', () => {
  const time = new FakeClock()
  const clock = new TurnClock(time)
  const seen: string[] = []
  clock.hold()
  clock.after(10, () => seen.push('after'))
  const each = clock.every(10, () => seen.push('every'))
  time.advance(10)
  each.cancel()
  time.advance(30)
  assert.deepEqual(seen.toSorted(), ['after', 'every'])
})
