// scripts/measure.sh, behind `npm run bench`, `soak` and the others: its help, without running anything.

import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { run } from './support/labs/lab-process.ts'

const rows: readonly (readonly [kind: string, expected: RegExp, why: string])[] = [
  [
    'soak',
    /npm run soak .*--hours N.*shared\.soak\.ts\n {2}The load/s,
    'options of the frame, then each load',
  ],
  [
    'bench',
    /npm run bench .*--strict.*restart\.bench\.ts/s,
    'options of its main, then each bench',
  ],
  ['mutate', /npm run mutate .*--only PART.*--shard I\/N/s, 'options of its main'],
  [
    'bench/peers',
    /npm run bench:peers .*interleaved/s,
    'the name of the script, not of the folder',
  ],
]

test('measure.sh --help lists what it can run, and runs nothing', async () => {
  for (const [kind, expected, why] of rows) {
    const args = [resolve('scripts/measure.sh'), kind, '--help']
    const { stdout, stderr, code } = await run('sh', args, { limitMs: 10_000 })
    assert.equal(code, 0, stderr)
    assert.match(stdout, expected, why)
  }
})
