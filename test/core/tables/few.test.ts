import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addTo, FewMap, FewSet, removeFrom } from '../../../src/core/tables/few.ts'

test('FewSet behaves like a Set', () => {
  const act = fc.record({ kind: fc.constantFrom('add', 'delete', 'has'), item: fc.nat(3) })
  fc.assert(
    fc.property(fc.option(fc.nat(3), { nil: undefined }), fc.array(act), (first, acts) => {
      const few = new FewSet(first)
      const model = new Set(first === undefined ? [] : [first])
      for (const { kind, item } of acts) {
        assert.equal(few.has(item), model.has(item))
        if (kind === 'delete') assert.equal(few.delete(item), model.delete(item))
        if (kind === 'add') few.add(item)
        if (kind === 'add') model.add(item)
        assert.deepEqual([...few], [...model])
        assert.equal(few.size, model.size)
      }
    }),
  )
})

test('addTo and removeFrom keep a set for each key that has an item', () => {
  const act = fc.record({ isAdded: fc.boolean(), key: fc.nat(2), item: fc.nat(3) })
  fc.assert(
    fc.property(fc.array(act), (acts) => {
      const sets = new Map<number, FewSet<number>>()
      const model = new Map<number, Set<number>>()
      for (const { isAdded, key, item } of acts) {
        const items = model.get(key) ?? new Set()
        if (isAdded) addTo(sets, key, item)
        else removeFrom(sets, key, item)
        if (isAdded) items.add(item)
        else items.delete(item)
        if (items.size === 0) model.delete(key)
        else model.set(key, items)
        const found = [...sets].map(([each, few]) => [each, [...few]])
        assert.deepEqual(
          found,
          [...model].map(([each, all]) => [each, [...all]]),
        )
      }
    }),
  )
})

test('FewMap behaves like a Map', () => {
  const act = fc.record({
    kind: fc.constantFrom('set', 'delete', 'has'),
    key: fc.nat(3),
    value: fc.nat(9),
  })
  fc.assert(
    fc.property(fc.array(act), (acts) => {
      const few = new FewMap<number, number>()
      const model = new Map<number, number>()
      for (const { kind, key, value } of acts) {
        assert.equal(few.has(key), model.has(key))
        if (kind === 'delete') assert.equal(few.delete(key), model.delete(key))
        if (kind === 'set') few.set(key, value)
        if (kind === 'set') model.set(key, value)
        const values: number[] = []
        few.forEach((each) => values.push(each))
        assert.deepEqual(values, [...model.values()])
        assert.equal(few.size, model.size)
      }
    }),
  )
})
