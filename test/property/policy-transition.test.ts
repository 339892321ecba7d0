// From any policy to any other while names are known. On every single write of every commit, a flow that is allowed before and after is
// allowed. Afterwards every verdict is that of a naive reading of docs/spec/semantics 2.
// NAMEGATE_SEED=n replays one run.

import { test } from 'node:test'
import { runChanges } from '../support/models/policy-run.ts'
import { runsOf } from '../support/properties.ts'

const RUNS = runsOf(30)

test('Transition never cuts a flow that is allowed before and after, and ends where the naive policy does', () => {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  const first = replay === 0 ? 1 : replay
  for (let seed = first; seed < first + (replay === 0 ? RUNS : 1); seed++) {
    try {
      runChanges(seed)
    } catch (error) {
      throw new Error(`NAMEGATE_SEED=${seed} replays ${String(error)}`, { cause: error })
    }
  }
})

test('Transition cuts no flow that other keys pass when one change adds and removes audited denies', () => {
  // An old audited deny hides the new default until it is removed. Found among 1,200 runs.
  runChanges(587)
})
