// The lists of the pair table against plain sets, through random additions and removals.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PairTable } from '../../../src/names/tables/pair-table.ts'
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

test('PairTable lists the pairs of each use and of each mapping, whatever came and went', () => {
  const random = new Random(7)
  const firstOfMapping = new Int32Array(MAPPINGS + 1)
  const pairs = new PairTable({ capacity: MAPPINGS * ENDPOINTS, firstOfMapping })
  const firstOfUse = new Map<number, number>()
  const known = new Map<string, number>()
  for (let step = 0; step < runsOf(3_000); step++) {
    const mapping = 1 + random.below(MAPPINGS)
    const endpoint = 1 + random.below(ENDPOINTS)
    const row = pairs.find(mapping, endpoint)
    assert.equal(row, known.get(`${mapping} ${endpoint}`) ?? 0)
    // One use an endpoint here.
    const ofUse = firstOfUse.get(endpoint) ?? 0
    if (row === 0) {
      const added = pairs.add(mapping, endpoint)
      firstOfUse.set(endpoint, pairs.linkToUse(added, endpoint, ofUse))
      known.set(`${mapping} ${endpoint}`, added)
    } else {
      firstOfUse.set(endpoint, pairs.unlinkFromUse(row, ofUse))
      pairs.remove(row)
      known.delete(`${mapping} ${endpoint}`)
      assert.equal(pairs.isUsed(row), false)
    }
    const knownOf = (isOf: (key: string) => boolean): readonly number[] => {
      const own = [...known].filter(([key]) => isOf(key))
      return own.map(([, each]) => each).sort((a, b) => a - b)
    }
    assert.deepEqual(
      listed(pairs.nextOfUse, firstOfUse.get(endpoint) ?? 0),
      knownOf((key) => key.endsWith(` ${endpoint}`)),
    )
    assert.deepEqual(
      listed(pairs.nextOfMapping, firstOfMapping[mapping] ?? 0),
      knownOf((key) => key.startsWith(`${mapping} `)),
    )
  }
  assert.equal(pairs.slots.used, known.size)
})

test('PairTable.add gives 0 when the table is full, and room when a pair went', () => {
  const pairs = new PairTable({ capacity: 2, firstOfMapping: new Int32Array(3) })
  pairs.add(1, 1)
  pairs.add(1, 2)
  assert.equal(pairs.add(2, 1), 0)
  pairs.remove(pairs.find(1, 1))
  assert.equal(pairs.find(1, 1), 0)
  assert.notEqual(pairs.find(1, 2), 0, 'found when what stood before it went')
  assert.notEqual(pairs.add(2, 1), 0)
})
