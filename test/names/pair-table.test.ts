// The lists of the pair table against plain sets, through random additions and removals.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PairTable } from '../../src/names/pair-table.ts'
import { Random } from '../support/random.ts'

const MAPPINGS = 12
const ENDPOINTS = 5

function pairsOf(pairs: PairTable, first: number): readonly number[] {
  const rows: number[] = []
  for (let row = first; row !== 0; row = pairs.nextOfUse[row] ?? 0) rows.push(row)
  return rows.sort((a, b) => a - b)
}

test('PairTable lists the pairs of each use and of each mapping, whatever came and went', () => {
  const random = new Random(7)
  const pairs = new PairTable({ capacity: MAPPINGS * ENDPOINTS })
  const firstOfMapping = new Map<number, number>()
  const firstOfUse = new Map<number, number>()
  const known = new Map<string, number>()
  for (let step = 0; step < 3_000; step++) {
    const mapping = 1 + random.below(MAPPINGS)
    const endpoint = 1 + random.below(ENDPOINTS)
    const row = pairs.find(mapping, endpoint)
    assert.equal(row, known.get(`${mapping} ${endpoint}`) ?? 0)
    const first = firstOfMapping.get(mapping) ?? 0
    // One use an endpoint here.
    const ofUse = firstOfUse.get(endpoint) ?? 0
    if (row === 0) {
      const added = pairs.add(mapping, endpoint, first)
      firstOfMapping.set(mapping, added)
      firstOfUse.set(endpoint, pairs.linkToUse(added, endpoint, ofUse))
      known.set(`${mapping} ${endpoint}`, added)
    } else {
      firstOfUse.set(endpoint, pairs.unlinkFromUse(row, ofUse))
      firstOfMapping.set(mapping, pairs.remove(row, first))
      known.delete(`${mapping} ${endpoint}`)
      assert.equal(pairs.isUsed(row), false)
    }
    const own = [...known].filter(([key]) => key.endsWith(` ${endpoint}`)).map(([, each]) => each)
    assert.deepEqual(
      pairsOf(pairs, firstOfUse.get(endpoint) ?? 0),
      own.sort((a, b) => a - b),
    )
  }
  assert.equal(pairs.slots.used, known.size)
})

test('PairTable.add gives 0 when the table is full, and room when a pair went', () => {
  const pairs = new PairTable({ capacity: 2 })
  const first = pairs.add(1, 1, 0)
  pairs.add(1, 2, first)
  assert.equal(pairs.add(2, 1, 0), 0)
  pairs.remove(first, pairs.find(1, 2))
  assert.notEqual(pairs.add(2, 1, 0), 0)
})
