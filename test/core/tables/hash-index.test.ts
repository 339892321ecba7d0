// The index compared with a Map, with so few hashes that clusters form and wrap around the end of the table. Some hashes are equal in the
// bits of the bucket.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HashIndex } from '../../../src/core/tables/hash-index.ts'

/** Rows 1..capacity with their hashes. */
class Owner {
  readonly hashes = new Map<number, number>()
  hashOfRow(row: number): number {
    return this.hashes.get(row) ?? -1
  }
}

function rowsWith(index: HashIndex, owner: Owner, hash: number): number[] {
  const rows: number[] = []
  for (let at = index.start(hash); index.row(at) !== 0; at = index.next(at, hash)) {
    if (owner.hashOfRow(index.row(at)) === hash) rows.push(index.row(at))
  }
  return rows.sort((a, b) => a - b)
}

/** Hashes of one bucket each, and a second one for some. */
const HASHES = [...Array(41).keys(), 3 + 2 ** 31, 4 + 2 ** 31, 5 + 2 ** 30]

test('HashIndex finds exactly what a Map holds through random insertions and removals', () => {
  const row = fc.integer({ min: 1, max: 12 })
  const step = fc.record({ row, hash: fc.constantFrom(...HASHES) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const owner = new Owner()
      const index = new HashIndex(12, owner)
      for (const { row, hash } of steps) {
        if (owner.hashes.has(row)) {
          index.remove(row)
          owner.hashes.delete(row)
        } else {
          owner.hashes.set(row, hash)
          index.insert(hash, row)
        }
        for (const h of HASHES) {
          const expected = [...owner.hashes].filter(([, of]) => of === h).map(([r]) => r)
          assert.deepEqual(
            rowsWith(index, owner, h),
            expected.sort((a, b) => a - b),
          )
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('HashIndex keeps a cluster that wraps around the end when its head is removed', () => {
  const owner = new Owner()
  const index = new HashIndex(4, owner)
  const rows = [
    [1, 7],
    [2, 7],
    [3, 7],
    [4, 0],
  ] as const
  for (const [row, hash] of rows) {
    owner.hashes.set(row, hash)
    index.insert(hash, row)
  }
  index.remove(1)
  owner.hashes.delete(1)
  assert.deepEqual(rowsWith(index, owner, 7), [2, 3])
  assert.deepEqual(rowsWith(index, owner, 0), [4])
})

test('HashIndex skips rows of other hashes in a bucket without reading their keys', () => {
  const owner = new Owner()
  const index = new HashIndex(4, owner)
  for (let row = 1; row <= 4; row++) {
    owner.hashes.set(row, row * 2 ** 28)
    index.insert(row * 2 ** 28, row)
  }
  const looks = (hash: number): number[] => {
    const rows: number[] = []
    for (let at = index.start(hash); index.row(at) !== 0; at = index.next(at, hash)) {
      rows.push(index.row(at))
    }
    return rows
  }
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((top) => looks(top * 2 ** 28)),
    [[1], [2], [3], [4], []],
  )
})

test('HashIndex accepts rows up to the largest row number, and no others', () => {
  const index = new HashIndex(4, new Owner(), 1000)
  index.insert(2 ** 31 + 5, 1000)
  assert.equal(index.row(index.start(2 ** 31 + 5)), 1000)
  assert.throws(() => index.insert(6, 2000), /no larger/)
})

test('HashIndex refuses to remove a row that it does not have', () => {
  const owner = new Owner()
  owner.hashes.set(1, 3)
  assert.throws(() => new HashIndex(4, owner).remove(1), /is in the index/)
})
