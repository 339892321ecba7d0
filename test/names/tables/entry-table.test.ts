// The lists of the entry table compared with plain sets, through random additions and removals.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EntryTable } from '../../../src/names/tables/entry-table.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

const MAPPINGS = 12
const ENDPOINTS = 5

/** Rows of a list, sorted. */
function listed(next: Int32Array, first: number): readonly number[] {
  const rows: number[] = []
  for (let row = first; row !== 0; row = next[row] ?? 0) rows.push(row)
  return rows.sort((a, b) => a - b)
}

test('EntryTable lists the entries of each use and of each mapping, after any changes', () => {
  const random = new Random(7)
  const firstOfMapping = new Int32Array(MAPPINGS + 1)
  const firstOfUse = new Int32Array(ENDPOINTS + 1)
  const entries = new EntryTable({ capacity: MAPPINGS * ENDPOINTS, firstOfMapping, firstOfUse })
  const known = new Map<string, number>()
  for (let step = 0; step < runsOf(3_000); step++) {
    const mapping = 1 + random.below(MAPPINGS)
    const endpoint = 1 + random.below(ENDPOINTS)
    const row = entries.find(mapping, endpoint)
    assert.equal(row, known.get(`${mapping} ${endpoint}`) ?? 0)
    if (row === 0) {
      const added = entries.add(mapping, endpoint)
      // One use for each endpoint.
      entries.linkToUse(added, endpoint)
      known.set(`${mapping} ${endpoint}`, added)
    } else {
      entries.unlinkFromUse(row)
      entries.remove(row)
      known.delete(`${mapping} ${endpoint}`)
      assert.equal(entries.isUsed(row), false)
    }
    const knownOf = (isOf: (key: string) => boolean): readonly number[] => {
      const own = [...known].filter(([key]) => isOf(key))
      return own.map(([, each]) => each).sort((a, b) => a - b)
    }
    assert.deepEqual(
      listed(entries.nextOfUse, firstOfUse[endpoint] ?? 0),
      knownOf((key) => key.endsWith(` ${endpoint}`)),
    )
    assert.deepEqual(
      listed(entries.nextOfMapping, firstOfMapping[mapping] ?? 0),
      knownOf((key) => key.startsWith(`${mapping} `)),
    )
  }
  assert.equal(entries.slots.used, known.size)
})

test('EntryTable.add returns 0 when the table is full, and a row after a removal', () => {
  const entries = new EntryTable({
    capacity: 2,
    firstOfMapping: new Int32Array(3),
    firstOfUse: new Int32Array(3),
  })
  entries.add(1, 1)
  entries.add(1, 2)
  assert.equal(entries.add(2, 1), 0)
  entries.remove(entries.find(1, 1))
  assert.equal(entries.find(1, 1), 0)
  assert.notEqual(entries.find(1, 2), 0, 'found after the removal of the row before it')
  assert.notEqual(entries.add(2, 1), 0)
})
