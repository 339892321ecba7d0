// The IPCache, names, identities and selectors against a list of facts that is read naively each time: after every
// batch of random changes the same labels for every prefix, one number for one label set, the same selections, the
// datapath as wanted, every count right (with VALIDATE=1); and nothing left when all is taken away.
// NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IpCacheModel } from '../support/ipcache-model.ts'

const RUNS = 20
const STEPS = 5_000
const STEPS_PER_CHECK = 20

function runOnce(seed: number): void {
  const model = new IpCacheModel(seed)
  for (let step = 1; step <= STEPS; step++) {
    model.step()
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
    names.pairs.slots,
  ]
  assert.deepEqual(
    left.map(({ used }) => used),
    [0, 0, 0, 0, 0],
  )
  assert.deepEqual([allocator.inUse, allocator.dynamicInUse, selectors.size], [0, 0, 0])
  assert.equal([...allocator.heldSets()].length, 0)
  assert.equal(labelSets.size, 3, 'the empty set and the two of the world')
}

test(`IpCache gives the labels, numbers and selections of a naive model through ${RUNS * STEPS} random steps`, (t) => {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  const first = replay === 0 ? 1 : replay
  const last = replay === 0 ? RUNS : replay
  t.diagnostic(`seeds ${first} to ${last}, ${STEPS} steps each`)
  for (let seed = first; seed <= last; seed++) {
    try {
      runOnce(seed)
    } catch (error) {
      throw new Error(`NAMEGATE_SEED=${seed} replays ${String(error)}`, { cause: error })
    }
  }
})
