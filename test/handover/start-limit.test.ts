// How long the running daemon waits for a successor to become ready.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { processorTimeOf, StartLimit } from '../../src/handover/start-limit.ts'
import { FakeClock } from '../support/fake-clock.ts'

/** The time in milliseconds after which a successor has no time left, if it uses `share` of a processor until `stops`. */
function timeOf(share: number, stops: number): number {
  const clock = new FakeClock()
  const began = clock.now()
  const limit = new StartLimit(clock, () => share * Math.min(clock.now() - began, stops))
  while (!limit.isOver && clock.now() - began < 60_000) clock.advance(50)
  return clock.now() - began
}

const rows: readonly (readonly [
  share: number,
  stops: number,
  least: number,
  most: number,
  why: string,
])[] = [
  [0, Infinity, 5000, 5250, 'a successor that hangs has five seconds'],
  [0.005, Infinity, 5000, 5250, 'a successor that only waits uses the processor a little'],
  [0.2, Infinity, 15_000, 15_250, 'a successor with a fifth of a processor has fifteen seconds'],
  [
    1,
    3000,
    8000,
    8250,
    'a successor that hangs after three seconds of work has five seconds from then',
  ],
]

for (const [share, stops, least, most, why] of rows) {
  test(why, () => {
    const time = timeOf(share, stops)
    assert.ok(time >= least && time <= most, `${time} ms`)
  })
}

test('the processor time of a process grows with its work', () => {
  const before = processorTimeOf(process.pid)
  const end = performance.now() + 60_000
  while (processorTimeOf(process.pid) < before + 30 && performance.now() < end);
  assert.ok(processorTimeOf(process.pid) >= before + 30)
  assert.equal(processorTimeOf(2 ** 30), 0, 'a process that does not exist')
})
