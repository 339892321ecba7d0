// When and where a query is asked again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OVERDUE_MIN_MS, retryDelay, retryLanes } from '../../../src/proxy/upstream/retry-policy.ts'

const TIME = { timeout: 4000, attempts: 3 }
const SHARE = 4000 / 3

test('retryDelay asks another server when the answer is overdue, and the same server later', () => {
  const rows: readonly (readonly [number | undefined, boolean, number, string])[] = [
    [1, true, OVERDUE_MIN_MS, 'not sooner than our own pauses'],
    [200, true, 200, 'the usual time of the server'],
    [5000, true, SHARE, 'not later than its share'],
    [undefined, true, 400, 'an unknown server'],
    [1, false, 400, 'the same server: a loss is likelier than a slow name'],
    [200, false, 800, 'four times the overdue time'],
    [undefined, false, SHARE, 'it never answered: the whole share'],
    [2100, false, 2100, 'it takes longer than a share: a second query would not be faster'],
    [9000, false, 4000 - SHARE, 'the last attempt still has its share'],
  ]
  for (const [overdue, elsewhere, expected, reason] of rows) {
    assert.equal(retryDelay(overdue, elsewhere, TIME), expected, reason)
  }
})

test('retryLanes grow from the shortest delay to the whole time and have the share', () => {
  for (const [timeout, attempts] of [
    [4000, 3],
    [10, 1],
    [200, 1],
    [60_000, 16],
  ] as const) {
    const lanes = retryLanes({ timeout, attempts })
    assert.deepEqual(
      lanes,
      [...new Set(lanes)].sort((a, b) => a - b),
    )
    assert.ok(lanes.includes(timeout) && lanes.includes(timeout / attempts) && lanes.length < 40)
  }
})
