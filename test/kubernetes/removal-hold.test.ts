// Which removals of policies take effect, and when. Each row is one history on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RemovalHold } from '../../src/kubernetes/cluster/removal-hold.ts'
import { FakeClock } from '../support/fake-clock.ts'

/** `at` is in seconds. `gone`: how many policies are out of force after the step. */
type Step = readonly [
  at: number,
  what: readonly ['remove' | 'back', ...string[]] | readonly ['accept' | 'kind gone' | 'look'],
  gone: number,
]

interface Row {
  readonly reason: string
  /** How many policies there are. */
  readonly policies: number
  readonly steps: readonly Step[]
  /** The holds that were reported, in order. */
  readonly holds: readonly boolean[]
}

const ROWS: readonly Row[] = [
  {
    reason: 'a single removal waits until no later one can make it one of many',
    policies: 10,
    steps: [
      [0, ['remove', 'a'], 0],
      [9.9, ['look'], 0],
      [10, ['look'], 1],
    ],
    holds: [],
  },
  {
    reason: 'one policy of one is not many: it is what a person deletes',
    policies: 1,
    steps: [
      [0, ['remove', 'a'], 0],
      [10, ['look'], 1],
    ],
    holds: [],
  },
  {
    reason: 'exactly the share is not more than the share',
    policies: 10,
    steps: [
      [0, ['remove', 'a', 'b'], 0],
      [10, ['look'], 2],
    ],
    holds: [],
  },
  {
    reason: 'more than the share within the window is held, then takes effect',
    policies: 10,
    steps: [
      [0, ['remove', 'a', 'b', 'c'], 0],
      [299, ['look'], 0],
      [300, ['look'], 3],
    ],
    holds: [true, false],
  },
  {
    reason: 'slow removals are single ones',
    policies: 20,
    steps: [
      [0, ['remove', 'a'], 0],
      [6, ['remove', 'b'], 0],
      [12, ['remove', 'c'], 1],
      [22, ['look'], 3],
    ],
    holds: [],
  },
  {
    reason: 'removals during a hold wait for its end',
    policies: 10,
    steps: [
      [0, ['remove', 'a', 'b', 'c'], 0],
      [100, ['remove', 'd'], 0],
      [300, ['look'], 4],
    ],
    holds: [true, false],
  },
  {
    reason: 'accept makes them effective at once',
    policies: 10,
    steps: [
      [0, ['remove', 'a', 'b', 'c'], 0],
      [20, ['accept'], 3],
      [400, ['look'], 3],
    ],
    holds: [true, false],
  },
  {
    reason: 'a policy that returns stays in force, during a hold and before',
    policies: 10,
    steps: [
      [0, ['remove', 'a'], 0],
      [5, ['back', 'a'], 0],
      [20, ['remove', 'b', 'c', 'd'], 0],
      [30, ['back', 'c'], 0],
      [400, ['look'], 2],
    ],
    holds: [true, false],
  },
  {
    reason: 'a kind that has gone is no work on a single policy',
    policies: 10,
    steps: [
      [0, ['remove', 'a'], 0],
      [1, ['kind gone'], 0],
      [300, ['look'], 0],
      [301, ['look'], 1],
    ],
    holds: [true, false],
  },
  {
    reason: 'a kind that has gone without a removal holds nothing',
    policies: 10,
    steps: [
      [0, ['kind gone'], 0],
      [10, ['remove', 'a'], 0],
      [20, ['look'], 1],
    ],
    holds: [],
  },
]

for (const { reason, policies, steps, holds } of ROWS) {
  void test(reason, () => {
    const clock = new FakeClock()
    const start = clock.now()
    const gone = new Set<string>()
    const kept = new Set<string>()
    const reported: boolean[] = []
    const hold = new RemovalHold({
      clock,
      share: 0.2,
      holdMs: 300_000,
      count: () => policies - gone.size,
      remove: (names) => names.forEach((name) => gone.add(name)),
      keepHeld: (name, isHeld) => (isHeld ? kept.add(name) : kept.delete(name)),
      onHold: (isHolding) => reported.push(isHolding),
    })
    for (const [at, [what, ...names], expected] of steps) {
      clock.advance(start + at * 1000 - clock.now())
      if (what === 'accept') hold.accept()
      else if (what === 'kind gone') hold.hold()
      for (const name of names) {
        if (what === 'remove') hold.add(name)
        else hold.back(name)
      }
      assert.equal(gone.size, expected, `${at} s: ${what} ${names.join(' ')}`)
      assert.equal(kept.size, hold.held, 'what is held is kept')
    }
    assert.deepEqual(reported, holds)
  })
}
