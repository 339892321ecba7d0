import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IdChains } from '../../src/policy/id-chains.ts'

function listOf(chains: IdChains, first: number): number[] {
  const ids: number[] = []
  for (let link = first; link !== 0; link = chains.next(link)) ids.push(chains.id(link))
  return ids
}

test('IdChains.remove says -1 for an id that the list does not hold', () => {
  const chains = new IdChains()
  const first = chains.add(0, 7)
  assert.equal(chains.remove(first, 8), -1)
  assert.equal(chains.remove(0, 7), -1)
  assert.deepEqual(listOf(chains, first), [7])
  assert.equal(chains.remove(first, 7), 0)
})

test('IdChains keeps many lists apart, as arrays do, and reuses freed links', () => {
  const step = fc.record({ list: fc.nat(3), id: fc.nat(9), add: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const chains = new IdChains()
      const firsts = [0, 0, 0, 0]
      const model: number[][] = [[], [], [], []]
      for (const { list, id, add } of steps) {
        const ids = model[list] ?? []
        const first = firsts[list] ?? 0
        if (add) {
          ids.unshift(id)
          firsts[list] = chains.add(first, id)
        } else if (ids.includes(id)) {
          ids.splice(ids.indexOf(id), 1)
          firsts[list] = chains.remove(first, id)
        } else {
          assert.equal(chains.remove(first, id), -1)
        }
      }
      assert.deepEqual(
        firsts.map((first) => listOf(chains, first)),
        model,
      )
    }),
  )
  const chains = new IdChains()
  for (let i = 0; i < 1_000; i++) assert.equal(chains.remove(chains.add(0, i), i), 0)
  assert.equal(chains.octets, new IdChains().octets, 'one id at a time needs no more room')
})
