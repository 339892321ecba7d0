// The chains of saved entries by address: a chain holds all entries of an address, and an entry alone on its address is marked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NONE, PendingAddresses } from '../../src/restore/pending-entries.ts'
import type { SavedPairs } from '../../src/restore/state-port.ts'

const SIZE = 16

/** Entries with these addresses, and defaults for the rest. */
function savedOf(rows: readonly { readonly family: 4 | 6; readonly last: number }[]): SavedPairs {
  const octets = new Uint8Array(rows.length * SIZE)
  for (const [row, { last }] of rows.entries()) octets[row * SIZE + 3] = last
  const zero = (): number => 0
  return {
    ...{ count: rows.length, endpoint: zero, until: zero, grace: zero, nameAt: zero },
    nameLength: zero,
    family: (row) => rows[row]?.family ?? 4,
    octets: () => octets,
    addressAt: (row) => row * SIZE,
    free: () => undefined,
  }
}

function chainOf(pending: PendingAddresses, saved: SavedPairs, row: number): readonly number[] {
  const rows: number[] = []
  const chain = pending.chain(saved.family(row), saved.octets(row), saved.addressAt(row))
  for (let each = pending.first(chain); each !== NONE; each = pending.next(each)) rows.push(each)
  return rows
}

test('PendingAddresses has all rows of an address in its chain, and marks those that are alone', () => {
  const address = fc.record({
    family: fc.constantFrom<4 | 6>(4, 6),
    last: fc.integer({ min: 0, max: 30 }),
  })
  fc.assert(
    fc.property(fc.array(address, { maxLength: 40 }), (rows) => {
      const saved = savedOf(rows)
      const pending = new PendingAddresses(saved)
      for (const [row, { family, last }] of rows.entries()) {
        const chain = chainOf(pending, saved, row)
        const same = [...rows.keys()].filter((other) => {
          return rows[other]?.family === family && rows[other]?.last === last
        })
        for (const other of same) assert.ok(chain.includes(other))
        assert.equal(pending.shares(row), chain.length > 1)
      }
    }),
  )
})
