// Linked rows compared with arrays.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LinkedRows, NO_ROW } from '../../../src/core/tables/linked-rows.ts'

const ROWS = 7
const LISTS = 3

function rowsOf(linked: LinkedRows, list: number): number[] {
  const rows: number[] = []
  for (let row = linked.first(list); row !== NO_ROW; row = linked.after(row)) rows.push(row)
  return rows
}

test('LinkedRows keeps every list in the order of an array', () => {
  const step = fc.record({ row: fc.nat(ROWS - 1), list: fc.nat(LISTS - 1), atEnd: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const linked = new LinkedRows(ROWS, LISTS)
      const model = Array.from({ length: LISTS }, (): number[] => [])
      for (const { row, list, atEnd } of steps) {
        const holder = model.findIndex((rows) => rows.includes(row))
        if (holder >= 0) {
          linked.remove(holder, row)
          model[holder] = (model[holder] ?? []).filter((other) => other !== row)
        } else if (atEnd) {
          linked.addLast(list, row)
          model[list]?.push(row)
        } else {
          linked.addFirst(list, row)
          model[list]?.unshift(row)
        }
        for (const [i, rows] of model.entries()) {
          assert.deepEqual(rowsOf(linked, i), rows)
          assert.equal(linked.first(i), rows[0] ?? NO_ROW)
          assert.equal(linked.last(i), rows.at(-1) ?? NO_ROW)
        }
      }
    }),
    { numRuns: 500 },
  )
})

test('LinkedRows lets the caller remove the present row while it reads a list', () => {
  const linked = new LinkedRows(4, 1)
  for (const row of [0, 1, 2, 3]) linked.addLast(0, row)
  for (let row = linked.first(0); row !== NO_ROW;) {
    const after = linked.after(row)
    if (row % 2 === 0) linked.remove(0, row)
    row = after
  }
  assert.deepEqual(rowsOf(linked, 0), [1, 3])
})
