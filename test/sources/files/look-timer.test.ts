import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LookTimer, type Looked } from '../../../src/sources/files/look-timer.ts'
import { FakeClock } from '../../support/fake-clock.ts'

test('LookTimer goes on at once with a look that was not finished, and waits after one that was', () => {
  const clock = new FakeClock(0)
  const found: Looked[] = ['unfinished', 'unfinished', 'quiet', 'unfinished', 'done']
  const looks: number[] = []
  const timer = new LookTimer({
    clock,
    look: (until) => {
      assert.equal(until, clock.now() + 2)
      looks.push(clock.now())
      return found.shift() ?? 'quiet'
    },
  })
  timer.start(() => [])
  clock.advance(1000)
  assert.deepEqual(looks, [100, 100, 100, 200, 200])
  assert.equal(timer.isRunning, false)
})

test('LookTimer.stop ends a look that was not finished', () => {
  const clock = new FakeClock(0)
  let looks = 0
  const timer = new LookTimer({
    clock,
    look: () => {
      looks++
      timer.stop()
      return 'unfinished'
    },
  })
  timer.start(() => [])
  clock.advance(1000)
  assert.equal(looks, 1)
})
