import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { identity } from '../../../../src/core/ids.ts'
import { parsePrefix } from '../../../../src/core/ip.ts'
import { Mirror } from '../../../../src/datapath/nftables/tables/mirror.ts'
import { cut, PrefixTable, type Wide } from '../../../../src/datapath/nftables/tables/prefixes.ts'
import { PrefixBatch } from '../../../../src/datapath/prefix-batch.ts'

const BITS = 8

/** Prefixes of a world with 256 addresses. */
const prefix = fc
  .record({
    scope: fc.constantFrom(0, 0, 5),
    address: fc.integer({ min: 0, max: 255 }),
    length: fc.integer({ min: 0, max: BITS }),
    id: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ scope, address, length, id }): Wide => {
    const size = 2 ** (BITS - length)
    const first = address - (address % size)
    return {
      scope,
      first: BigInt(first),
      last: BigInt(first + size - 1),
      length,
      identity: id,
      addressClass: 9,
    }
  })

const prefixes = fc.uniqueArray(prefix, {
  selector: ({ scope, first, length }) => `${scope} ${first} ${length}`,
  maxLength: 24,
})

test('cut makes ranges that never overlap, each with the value of the longest prefix around it', () => {
  fc.assert(
    fc.property(prefixes, (all) => {
      const ranges = cut(all)
      for (const scope of [0, 5]) {
        for (let address = 0n; address < 2n ** BigInt(BITS); address++) {
          const isAround = (each: Wide): boolean =>
            each.scope === scope && each.first <= address && address <= each.last
          const found = ranges.filter(isAround)
          const longest = all.filter(isAround).toSorted((a, b) => b.length - a.length)[0]
          assert.ok(found.length <= 1, `${address} is in ${found.length} ranges`)
          assert.equal(found[0]?.identity, longest?.identity, `scope ${scope}, ${address}`)
        }
      }
    }),
  )
})

function batchOf(text: string, id: number): PrefixBatch {
  const parsed = parsePrefix(text)
  assert.ok(parsed.kind === 'ok')
  const batch = new PrefixBatch()
  batch.add(parsed.prefix, identity(id), identity(9))
  return batch
}

test('PrefixTable bounds exact addresses and wider prefixes together, and returns the value before', () => {
  const table = new PrefixTable(new Mirror(), 2)
  const set = (text: string, id: number): boolean => table.set(batchOf(text, id), 0, id, id && 9)
  assert.equal(set('192.0.2.0/24', 7), true)
  assert.equal(set('192.0.2.1/32', 8), true)
  assert.equal(set('192.0.2.2/32', 8), false, 'no room')
  assert.equal(set('192.0.2.1/32', 9), true, 'an existing entry can change')
  assert.equal(table.beforeIdentity, 8)
  assert.equal(set('192.0.2.0/24', 0), true)
  assert.equal(table.beforeIdentity, 7)
  assert.equal(set('192.0.2.2/32', 8), true, 'room again')
  assert.equal(table.beforeIdentity, 0)
})

test('longest finds the exact address first, then the longest prefix of the scope', () => {
  const table = new PrefixTable(new Mirror(), 8)
  for (const [text, id] of [
    ['192.0.0.0/16', 1],
    ['192.0.2.0/24', 2],
    ['192.0.2.1/32', 3],
  ] as const) {
    table.set(batchOf(text, id), 0, id, 9)
  }
  const rows: readonly (readonly [string, number])[] = [
    ['192.0.2.1', 3],
    ['192.0.2.2', 2],
    ['192.0.3.1', 1],
    ['192.1.0.1', 0],
  ]
  for (const [address, id] of rows) {
    const octets = batchOf(`${address}/32`, 1).octets(0)
    assert.equal(table.longest(0, 4, octets)[0], id, address)
    assert.equal(table.longest(5, 4, octets)[0], 0, 'another scope')
  }
})
