// The wheel compared with a sorted list.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExpiryWheel } from '../../../src/names/expiry/expiry-wheel.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

const REACH = 1 << 17
const ROWS = 40

test('ExpiryWheel returns every row once, at its second or later, like a sorted list', () => {
  const random = new Random(3)
  let now = 1000
  const wheel = new ExpiryWheel({ capacity: ROWS, tick: now })
  const due = new Map<number, number>()
  for (let step = 0; step < runsOf(20_000); step++) {
    const row = 1 + random.below(ROWS)
    const choice = random.below(10)
    if (choice < 6) {
      const at = now + random.below(30) - 5
      wheel.place(row, at)
      due.set(row, Math.max(at, now))
    } else if (choice < 7) {
      wheel.remove(row)
      due.delete(row)
    } else {
      now += random.below(8)
      const taken: number[] = []
      for (let next = wheel.takeDue(now); next !== 0; next = wheel.takeDue(now)) {
        assert.ok((due.get(next) ?? Infinity) <= now, 'never early')
        const earliest = Math.min(...due.values())
        assert.equal(due.get(next), earliest, 'in order of seconds')
        due.delete(next)
        taken.push(next)
      }
      assert.ok(
        [...due.values()].every((at) => at > now),
        'nothing that is due is left',
      )
    }
  }
})

test('ExpiryWheel returns a row beyond its reach early, never late', () => {
  const wheel = new ExpiryWheel({ capacity: 2, tick: 0 })
  wheel.place(1, REACH * 3)
  assert.equal(wheel.takeDue(REACH - 2), 0)
  assert.equal(wheel.takeDue(REACH - 1), 1, 'in the farthest bucket')
  wheel.place(1, REACH * 3)
  wheel.place(2, REACH - 1)
  assert.equal(wheel.takeDue(REACH - 1), 2, 'a row of the present second')
  assert.equal(wheel.takeDue(REACH - 1), 0)
})

test('ExpiryWheel removes rows from the middle of a bucket', () => {
  const wheel = new ExpiryWheel({ capacity: 5, tick: 0 })
  for (const row of [1, 2, 3, 4, 5]) wheel.place(row, 9)
  wheel.remove(3)
  wheel.remove(3)
  wheel.place(5, 10)
  const taken = [wheel.takeDue(9), wheel.takeDue(9), wheel.takeDue(9), wheel.takeDue(9)]
  assert.deepEqual(new Set(taken.slice(0, 3)), new Set([1, 2, 4]))
  assert.equal(taken[3], 0)
  assert.equal(wheel.takeDue(20), 5)
})
