// The IPCache, names, identities and selectors compared with a list of facts that is read naively each time. After every batch of random
// changes, every prefix has the same labels, each label set has one number, the selections are equal, the datapath is as wanted, and every
// count is right (with VALIDATE=1). Nothing is left when everything is removed.
// NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { checkApplied } from '../support/models/core-counts.ts'
import { IpCacheModel } from '../support/models/ipcache-model.ts'
import { runsOf } from '../support/properties.ts'
import { SlowRecorder } from '../support/models/slow-recorder.ts'

const RUNS = runsOf(4)
const STEPS = 5_000
const SLOW_RUNS = runsOf(2)
const SLOW_STEPS = 2_000
const STEPS_PER_CHECK = 20

function runOnce(seed: number, steps: number, slow?: SlowRecorder): void {
  const model = new IpCacheModel(seed, slow)
  for (let step = 1; step <= steps; step++) {
    model.step()
    if (slow !== undefined) checkApplied(model.node)
    if (step % STEPS_PER_CHECK !== 0) continue
    model.finish()
    model.check()
  }
  model.clear()
  const { ipcache, names, allocator, labelSets, selectors } = model.node.core
  const left = [
    ipcache.prefixes.slots,
    ipcache.facts.slots,
    names.names.slots,
    names.mappings.slots,
    names.entries.slots,
  ]
  assert.deepEqual(
    left.map(({ used }) => used),
    [0, 0, 0, 0, 0],
  )
  assert.deepEqual([allocator.inUse, allocator.dynamicInUse, selectors.size], [0, 0, 0])
  assert.equal([...allocator.heldSets()].length, 0)
  assert.equal(labelSets.size, 3, 'the empty set and the two of the world')
}

function runAll(t: TestContext, run: (seed: number) => void, runs: number): void {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  const first = replay === 0 ? 1 : replay
  const last = replay === 0 ? runs : replay
  t.diagnostic(`seeds ${first} to ${last}`)
  for (let seed = first; seed <= last; seed++) {
    try {
      run(seed)
    } catch (error) {
      throw new Error(`NAMEGATE_SEED=${seed} replays ${String(error)}`, { cause: error })
    }
  }
}

test(`IpCache gives the labels, numbers and selections of a naive model through ${RUNS * STEPS} random steps`, (t) => {
  runAll(t, (seed) => runOnce(seed, STEPS), RUNS)
})

test('IpCache does so, too, when commits end later than they begin and other changes happen meanwhile', (t) => {
  runAll(t, (seed) => runOnce(seed, SLOW_STEPS, new SlowRecorder()), SLOW_RUNS)
})
