import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FewSet } from '../../src/core/few-set.ts'

test('FewSet is a Set for everything that is done to it', () => {
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
