// The small form of `npm run fuzz`: 20,000 mutated packets through the whole daemon, over real sockets. FUZZ_SEED
// replays a run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runsOf } from '../support/properties.ts'
import { run } from '../fuzz/support/run.ts'

const COUNT = runsOf(20_000)
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_260_914)

test('Daemon answers 20,000 mutated packets as docs/spec/semantics 4 says, and learns what the oracle says', async () => {
  const { tally, faults } = await run({ count: COUNT, seed: SEED })
  assert.deepEqual(faults, [], `FUZZ_SEED=${SEED}`)
  assert.deepEqual(tally.shortfalls, [])
  assert.ok(tally.packets.field * 2 >= COUNT, 'half are single-field mutations of answers')
})
