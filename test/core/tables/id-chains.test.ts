import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IdChains } from '../../../src/core/tables/id-chains.ts'

function idsOf(chains: IdChains, list: number): number[] {
  if (list > 0) return [list - 1]
  const ids: number[] = []
  for (let link = -list; link !== 0; link = chains.next(link)) ids.push(chains.id(link))
  return ids
}

function sorted(ids: readonly number[]): number[] {
  return [...ids].sort((a, b) => a - b)
}

test('IdChains keeps many lists apart, like arrays', () => {
  const step = fc.record({ list: fc.nat(3), id: fc.nat(9), add: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const chains = new IdChains()
      const lists = [0, 0, 0, 0]
      const model: number[][] = [[], [], [], []]
      for (const { list, id, add } of steps) {
        const ids = model[list] ?? []
        assert.equal(chains.holds(lists[list] ?? 0, id), ids.includes(id))
        if (add) {
          ids.push(id)
          lists[list] = chains.add(lists[list] ?? 0, id)
        } else if (ids.includes(id)) {
          ids.splice(ids.indexOf(id), 1)
          lists[list] = chains.remove(lists[list] ?? 0, id)
        }
      }
      for (const [i, ids] of model.entries()) {
        assert.deepEqual(sorted(idsOf(chains, lists[i] ?? 0)), sorted(ids))
        assert.equal(lists[i] === 0, ids.length === 0, 'only the empty list is 0')
      }
    }),
    { numRuns: 500 },
  )
})

test('IdChains reuses freed links, and needs none for lists of one', () => {
  const chains = new IdChains()
  const { octets } = chains
  for (let i = 0; i < 1_000; i++) {
    const three = chains.add(chains.add(chains.add(0, 1), 2), 3)
    assert.equal(chains.remove(chains.remove(chains.remove(three, 2), 1), 3), 0)
    chains.add(0, i)
  }
  assert.equal(chains.octets, octets)
})

test('IdChains accepts the greatest id', () => {
  const chains = new IdChains()
  const list = chains.add(0, 2 ** 31 - 2)
  assert.ok(chains.holds(list, 2 ** 31 - 2))
  assert.deepEqual(sorted(idsOf(chains, chains.add(list, 0))), [0, 2 ** 31 - 2])
})
