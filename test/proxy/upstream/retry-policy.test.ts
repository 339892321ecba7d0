// When a query is asked again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OVERDUE_MIN_MS, retryDelay, retryLanes } from '../../../src/proxy/upstream/retry-policy.ts'

const TIME = { timeout: 4000, attempts: 3 }
const SHARE = 4000 / 3

test('retryDelay asks elsewhere when the answer is overdue, the same server later', () => {
  const rows: readonly (readonly [number | undefined, boolean, number, string])[] = [
    [1, true, OVERDUE_MIN_MS, 'no sooner than our own pauses take'],
    [200, true, 200, 'by what the server usually takes'],
    [5000, true, SHARE, 'no later than its share'],
    [undefined, true, 400, 'a server nobody knows'],
    [1, false, 400, 'the same one: a loss is likelier than a slow name then'],
    [200, false, 800, 'four times what makes it overdue'],
    [undefined, false, SHARE, 'it never answered: patiently'],
    [2100, false, 2100, 'it takes longer than a share: a second question would not be sooner'],
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
