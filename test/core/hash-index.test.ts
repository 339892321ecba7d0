// The index against a Map, with so few hashes that clusters form and wrap around the end of the table.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HashIndex, hashPair } from '../../src/core/hash-index.ts'

/** Rows 1..capacity with the hash each has now. */
class Owner {
  readonly hashes = new Map<number, number>()
  hashOfRow(row: number): number {
    return this.hashes.get(row) ?? -1
  }
}

function rowsWith(index: HashIndex, owner: Owner, hash: number): number[] {
  const rows: number[] = []
  for (let at = index.start(hash); index.row(at) !== 0; at = index.next(at)) {
    if (owner.hashOfRow(index.row(at)) === hash) rows.push(index.row(at))
  }
  return rows.sort((a, b) => a - b)
}

test('HashIndex finds exactly what a Map holds through random insertions and removals', () => {
  const step = fc.record({ row: fc.integer({ min: 1, max: 12 }), hash: fc.nat(40) })
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
        for (let h = 0; h <= 40; h++) {
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

test('HashIndex keeps a cluster that wraps around the end whole when its head goes', () => {
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

test('HashIndex refuses to remove a row that it does not hold', () => {
  const owner = new Owner()
  owner.hashes.set(1, 3)
  assert.throws(() => new HashIndex(4, owner).remove(1), /is in the index/)
})

test('hashPair spreads neighbours over the low bits and knows left from right', () => {
  const buckets = new Set<number>()
  for (let a = 0; a < 64; a++) for (let b = 0; b < 64; b++) buckets.add(hashPair(a, b) & 4095)
  assert.ok(
    buckets.size > 2300,
    `4096 pairs fall into ${buckets.size} of 4096 buckets, chance gives 2589`,
  )
  assert.notEqual(hashPair(1, 2), hashPair(2, 1))
})
