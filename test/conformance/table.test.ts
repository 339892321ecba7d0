// Compares the table with docs/spec/correctness: it has every id of the sections 1.1 to 1.11 and 2. ran.test.ts checks whether the named
// tests ran and passed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROWS } from './table.ts'

/** Prefix, and the number of ids, which begin at 1. */
const IDS: readonly (readonly [prefix: string, count: number])[] = [
  ['P', 13],
  ['T', 13],
  ['E', 13],
  ['F', 3],
  ['Q', 3],
  ['S', 6],
  ['N', 4],
  ['L', 4],
  ['C', 3],
  ['A', 33],
]
/** Sections whose rows have no ids. */
const SECTIONS = ['1.5', '1.11']

test('ROWS has a row for every id, and no other row', () => {
  const wanted = IDS.flatMap(([prefix, count]) =>
    Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`),
  )
  const ids = new Set(ROWS.map(({ id }) => id))
  assert.deepEqual(ids, new Set([...wanted, ...SECTIONS]))
})

test('ROWS has no two rows with the same id and text', () => {
  const names = ROWS.filter(({ kind }) => kind !== 'tests').map(({ id, what }) => `${id} ${what}`)
  assert.deepEqual(
    names.filter((name, i) => names.indexOf(name) !== i),
    [],
  )
})
