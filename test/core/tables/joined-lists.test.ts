import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JoinedLists } from '../../../src/core/tables/joined-lists.ts'

const NAME = fc.constantFrom('a', 'b', 'c', 'd')
const LIST = fc.option(fc.array(fc.nat(9), { maxLength: 3 }), { nil: undefined })
const STEP = fc.record({ name: NAME, list: LIST, look: fc.boolean(), accept: fc.boolean() })

test('JoinedLists has the items of all lists in order, after any replacement, and so has a follower', () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 40 }), (steps) => {
      const expected = new Map<string, readonly number[]>()
      const lists = new JoinedLists<number>()
      const follower = new JoinedLists<number>()
      const ahead = new Set<string>()
      for (const { name, list, look, accept } of steps) {
        if (list === undefined) expected.delete(name)
        else expected.set(name, list)
        lists.set(name, list)
        ahead.add(name)
        if (look) assert.deepEqual(lists.all, [...expected.values()].flat())
        if (!accept) continue
        follower.follow(lists, ahead)
        ahead.clear()
        assert.equal(follower.all, lists.all)
      }
      assert.deepEqual(lists.all, [...expected.values()].flat())
      const copy = new JoinedLists<number>()
      copy.copy(lists)
      assert.deepEqual([...copy.names()], [...expected.keys()])
      assert.equal(copy.all, lists.all)
    }),
  )
})

test('JoinedLists gives the same list until something changes, and the only list itself', () => {
  const lists = new JoinedLists<number>()
  const only = [1, 2]
  lists.set('a', only)
  assert.equal(lists.all, only)
  const other = [3, 4]
  lists.set('a', other)
  assert.equal(lists.all, other)
  lists.set('b', [5])
  const both = lists.all
  lists.set('b', lists.get('b'))
  assert.equal(lists.all, both)
  lists.set('b', [6])
  assert.deepEqual(
    [both, lists.all],
    [
      [3, 4, 5],
      [3, 4, 6],
    ],
  )
})
