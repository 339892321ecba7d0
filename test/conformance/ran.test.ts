// Compares the table with the tests that ran. scripts/test.mjs runs this file after all others and passes their results.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { MODES } from './lab/world.ts'
import { faultsOf, type Result } from './results.ts'
import type { Row } from './rows/row.ts'
import { ROWS } from './table.ts'
import { canUseLab } from '../support/labs/lab.ts'

const path = process.env['NAMEGATE_RESULTS']
const results =
  path === undefined ? undefined : (JSON.parse(readFileSync(path, 'utf8')) as Result[])

test(
  'ROWS is proved by the tests that ran',
  { skip: results === undefined ? 'only scripts/test.mjs passes results' : false },
  () => {
    const maySkip = canUseLab() !== undefined
    assert.deepEqual(faultsOf(ROWS, MODES, results ?? [], maySkip), [])
  },
)

test('faultsOf returns the rows that the results do not prove', () => {
  const file = 'test/conformance/explicit.test.ts'
  const named = (name: string): Row => ({
    kind: 'tests',
    id: 'X1',
    what: 'x',
    tests: [[file, name]],
  })
  const wire: Row = {
    kind: 'script',
    id: 'X2',
    what: 'wire',
    run: async () => await Promise.resolve(),
  }
  const only: Row = { ...wire, only: { modes: ['tproxy'], reason: 'no other has it' } }
  const message: Row = {
    kind: 'exchange',
    id: 'X4',
    what: 'message',
    query: () => ({}),
    allowed: 'passes',
  }
  const wired = { file, name: 'conformance > X2 explicit: wire' }
  const rows: readonly (readonly [row: Row, ran: Result[], faults: string[], reason: string])[] = [
    [named('f adds'), [{ file, name: 'f adds 1', outcome: 'passed' }], [], 'passed'],
    [
      named('f adds'),
      [{ file, name: 'f takes', outcome: 'passed' }],
      [`X1: missing: ${file}: f adds`],
      'no test of the file has this name',
    ],
    [
      named('f adds'),
      [
        { file, name: 'f adds 1', outcome: 'passed' },
        { file, name: 'f adds 2', outcome: 'failed' },
      ],
      [`X1: FAILED: ${file}: f adds`],
      'one of the named tests failed',
    ],
    [
      named('f adds'),
      [{ file, name: 'f adds', outcome: 'skipped' }],
      [`X1: skipped: ${file}: f adds`],
      'not tried',
    ],
    [named('f adds'), [], [], 'its file did not run'],
    [wire, [{ ...wired, outcome: 'passed' }], [], 'over the wire'],
    [
      wire,
      [{ file, name: 'X2 explicit: another', outcome: 'passed' }],
      ['X2 explicit: missing: wire'],
      'another row with the same id',
    ],
    [only, [{ file, name: 'x', outcome: 'passed' }], [], 'a mode that the row leaves out'],
    [message, [{ file, name: 'x', outcome: 'passed' }], [], 'another mode proves it'],
    [
      { ...message, inEveryMode: true },
      [{ file, name: 'x', outcome: 'passed' }],
      ['X4 explicit: missing: message'],
      'every mode must prove it',
    ],
  ]
  for (const [row, ran, faults, reason] of rows) {
    assert.deepEqual(faultsOf([row], MODES, ran, false), faults, reason)
  }
  const gone: Row = { kind: 'tests', id: 'X3', what: 'x', tests: [['test/gone.test.ts', '']] }
  assert.deepEqual(faultsOf([gone], MODES, [], true), ['X3: missing: test/gone.test.ts: '])
  const skipped: Result[] = [{ file, name: 'f adds', outcome: 'skipped' }]
  assert.deepEqual(faultsOf([named('f adds')], MODES, skipped, true), [], 'no test can run here')
})
