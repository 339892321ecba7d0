import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FewMap } from '../../../src/core/tables/few-map.ts'

test('FewMap is a Map for everything that is done to it', () => {
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
