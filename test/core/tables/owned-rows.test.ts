// RowLists and OwnedRows compared with plain arrays, through random additions and removals.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OwnedRows } from '../../../src/core/tables/owned-rows.ts'
import { RowLists } from '../../../src/core/tables/row-lists.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

const ROWS = 40
const LISTS = 4

function listed(lists: { readonly next: Int32Array }, first: number | undefined): number[] {
  const rows: number[] = []
  for (let row = first ?? 0; row !== 0; row = lists.next[row] ?? 0) rows.push(row)
  return rows
}

test('RowLists keeps the order of its rows, and a single row writes no links', () => {
  const random = new Random(41)
  const lists = new RowLists({ rows: ROWS, first: new Int32Array(LISTS) })
  lists.add(1, 7)
  assert.deepEqual([...lists.next, ...lists.previous].filter(Boolean), [])
  lists.remove(1, 7)
  const model = Array.from({ length: LISTS }, (): number[] => [])
  for (let step = 0; step < runsOf(4000); step++) {
    const row = 1 + random.below(ROWS)
    const holding = model.findIndex((rows) => rows.includes(row))
    const list = random.below(LISTS)
    const rows = model[list] ?? []
    if (holding >= 0) {
      lists.remove(holding, row)
      model[holding] = (model[holding] ?? []).filter((each) => each !== row)
    } else if (rows.length > 0 && random.oneIn(2)) {
      const before = random.pick(rows)
      lists.addBehind(before, row)
      rows.splice(rows.indexOf(before) + 1, 0, row)
    } else {
      lists.add(list, row)
      rows.unshift(row)
    }
    model.forEach((each, i) => assert.deepEqual(listed(lists, lists.first[i]), each))
  }
})

test('OwnedRows finds each row by owner and key, and adds a new one after the first', () => {
  const random = new Random(42)
  const first = new Int32Array(LISTS + 1)
  const [owner, key] = [new Int32Array(ROWS + 1), new Int32Array(ROWS + 1)]
  const table = new OwnedRows({ capacity: ROWS, first, owner, key })
  const model = Array.from({ length: LISTS + 1 }, (): number[] => [])
  for (let step = 0; step < runsOf(4000); step++) {
    const row = 1 + random.below(ROWS)
    const of = owner[row] ?? 0
    if (of !== 0) {
      table.remove(row)
      model[of] = (model[of] ?? []).filter((each) => each !== row)
      owner[row] = 0
    } else {
      const to = 1 + random.below(LISTS)
      owner[row] = to
      key[row] = 1000 + row
      table.add(row)
      model[to]?.splice(1, 0, row)
    }
    for (let to = 1; to <= LISTS; to++) {
      assert.deepEqual(listed(table, first[to]), model[to])
      for (let each = 1; each <= ROWS; each++) {
        assert.equal(table.find(to, 1000 + each), owner[each] === to ? each : 0)
      }
    }
  }
})
