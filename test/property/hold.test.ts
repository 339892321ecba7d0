// Held answers with random kernels, clients, policies and endpoints. No reply leaves before its addresses are enforced, replies about one
// name leave in order, and every query ends exactly once (test/support/models/hold-model.ts).
// NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HoldModel } from '../support/models/hold-model.ts'
import { runsOf } from '../support/properties.ts'

const RUNS = runsOf(15)
const STEPS = 1_000

test(`ReleaseQueue releases nothing early or twice, and loses nothing, through ${RUNS * STEPS} random steps`, (t) => {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  const first = replay === 0 ? 1 : replay
  const last = replay === 0 ? RUNS : replay
  const seen = { held: 0, overdue: 0, orphaned: 0, refused: 0 }
  for (let seed = first; seed <= last; seed++) {
    try {
      const model = new HoldModel(seed)
      for (let step = 0; step < STEPS; step++) model.step()
      model.finish()
      const { releases, settlement, core } = model.world
      seen.held += releases.counters.held
      seen.overdue += releases.counters.overdue
      seen.orphaned += settlement.counters.orphaned
      seen.refused += core.committer.failures
    } catch (error) {
      throw new Error(`NAMEGATE_SEED=${seed} replays ${String(error)}`, { cause: error })
    }
  }
  t.diagnostic(JSON.stringify(seen))
  for (const [what, count] of Object.entries(seen)) {
    assert.ok(count > 0 || replay !== 0, `${what} happened`)
  }
})

test('ReleaseQueue holds an answer when another of its batch gives the endpoint a view of its address', () => {
  // Policy selects only one of the names. Found among 3,000 runs.
  const model = new HoldModel(354)
  for (let step = 0; step < STEPS; step++) model.step()
  model.finish()
})
