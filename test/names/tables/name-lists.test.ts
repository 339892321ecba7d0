// Mappings and uses, which are listed and found by their name, compared with plain sets, through random additions and removals.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MappingTable } from '../../../src/names/tables/mapping-table.ts'
import { UseTable } from '../../../src/names/tables/use-table.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

const NAMES = 8
const OTHERS = 6
const CAPACITY = NAMES * OTHERS

/** The functions of both tables. */
interface Listed {
  readonly nextOfName: Int32Array
  find(name: number, other: number): number
  add(name: number, other: number): number
  remove(row: number): void
}

function mkMappings(firstOfName: Int32Array): Listed {
  return new MappingTable({ capacity: CAPACITY, prefixCapacity: OTHERS, firstOfName })
}

function mkUses(firstOfName: Int32Array): Listed {
  const uses = new UseTable({ capacity: CAPACITY, firstOfName })
  return {
    nextOfName: uses.nextOfName,
    find: (name, endpoint) => uses.find(endpoint, name),
    add: (name, endpoint) => uses.add(endpoint, name),
    remove: (row) => uses.remove(row),
  }
}

const TABLES: readonly (readonly [name: string, make: (firstOfName: Int32Array) => Listed])[] = [
  ['MappingTable', mkMappings],
  ['UseTable', mkUses],
]

for (const [name, make] of TABLES) {
  test(`${name} finds and lists the rows of each name, and the first of them, after any changes`, () => {
    const random = new Random(11)
    const firstOfName = new Int32Array(NAMES + 1)
    const table = make(firstOfName)
    const known = Array.from({ length: NAMES + 1 }, () => new Map<number, number>())
    for (let step = 0; step < runsOf(4_000); step++) {
      const of = 1 + random.below(NAMES)
      const rows = known[of] ?? new Map<number, number>()
      const other = 1 + random.below(OTHERS)
      const row = table.find(of, other)
      assert.equal(row, rows.get(other) ?? 0)
      if (row === 0) {
        rows.set(other, table.add(of, other))
      } else {
        table.remove(row)
        rows.delete(other)
      }
      const listed: number[] = []
      for (let at = firstOfName[of] ?? 0; at !== 0; at = table.nextOfName[at] ?? 0) listed.push(at)
      assert.deepEqual(new Set(listed), new Set(rows.values()))
      assert.equal(listed.length, rows.size, 'each once')
    }
  })
}
