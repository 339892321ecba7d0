import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getHeapStatistics } from 'node:v8'
import { float64Column, int32Column, uint8Column } from '../../../src/core/tables/columns.ts'

const ROWS = 1 << 20

test('A column starts with zeros and keeps written values, at any length', () => {
  for (const rows of [1, 1000, ROWS]) {
    for (const make of [int32Column, uint8Column, float64Column]) {
      const column = make(rows)
      assert.equal(column.length, rows)
      assert.ok(column.every((value) => value === 0))
      column[rows - 1] = 200
      assert.equal(column[rows - 1], 200)
    }
  }
})

test('A large column does not count for the collection of garbage', () => {
  const before = getHeapStatistics().external_memory
  const columns = [int32Column(ROWS), uint8Column(ROWS), float64Column(ROWS)]
  const after = getHeapStatistics().external_memory
  assert.ok(after - before < ROWS, `${after - before} octets of ${columns.length} columns`)
})

test('A small column counts, so that V8 collects the small tables of many nodes', () => {
  const before = getHeapStatistics().external_memory
  const columns = Array.from({ length: 1000 }, () => int32Column(1000))
  const after = getHeapStatistics().external_memory
  assert.ok(after - before >= 4_000_000, `${after - before} octets of ${columns.length} columns`)
})
