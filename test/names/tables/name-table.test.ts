// The row that a key remembers compared with a fresh look, while names are added and removed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NameTable } from '../../../src/names/tables/name-table.ts'
import { hashedName } from '../../support/hashed-name.ts'

const NAMES = 6

test('NameTable.rowOf equals find, whatever names were added and removed since the key was used last', () => {
  const step = fc.record({
    kind: fc.constantFrom('look', 'add', 'remove', 'reuse'),
    name: fc.nat(NAMES - 1),
    other: fc.nat(NAMES - 1),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = new NameTable({ capacity: NAMES })
      const keys = Array.from({ length: NAMES }, (_, i) => hashedName(`n${i}.x`))
      for (const { kind, name, other } of steps) {
        const key = keys[name] ?? hashedName('n0.x')
        const row = table.rowOf(key)
        assert.equal(row, table.find(key.wire, 0, key.length, key.hash))
        if (kind === 'add' && row === 0) assert.equal(table.add(key), table.rowOf(key))
        if (kind === 'remove' && row !== 0) table.remove(row)
        const { wire, length, hash } = keys[other] ?? key
        if (kind === 'reuse') key.set(wire, length, hash)
      }
    }),
  )
})
