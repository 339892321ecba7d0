import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  difference,
  joined,
  replaced,
  RunningSum,
} from '../../../src/core/tables/list-difference.ts'

test('difference returns the items between the common start and the common end', () => {
  const rows: readonly (readonly [
    reason: string,
    before: string,
    after: string,
    gone: string,
    come: string,
  ])[] = [
    ['the same', 'abc', 'abc', '', ''],
    ['one in the middle', 'abc', 'axc', 'b', 'x'],
    ['one more at the end', 'ab', 'abc', '', 'c'],
    ['one less at the beginning', 'abc', 'bc', 'a', ''],
    ['a doubled one', 'aa', 'aaa', '', 'a'],
    ['all others', 'ab', 'cd', 'ab', 'cd'],
    ['from nothing', '', 'a', '', 'a'],
  ]
  for (const [reason, before, after, gone, come] of rows) {
    const found = difference(before.split(''), after.split(''))
    assert.deepEqual([found.before.join(''), found.after.join('')], [gone, come], reason)
  }
})

test('difference is complete: the common parts and it make both lists', () => {
  const list = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 8 })
  fc.assert(
    fc.property(list, list, (before, after) => {
      const found = difference(before, after)
      const common = before.length - found.before.length
      assert.equal(after.length - found.after.length, common)
      const start = before.findIndex((item, i) => item !== after[i])
      const head = before.slice(0, start < 0 ? common : Math.min(start, common))
      assert.deepEqual(
        [...head, ...found.after, ...after.slice(head.length + found.after.length)],
        after,
      )
      assert.deepEqual(
        [...head, ...found.before, ...after.slice(head.length + found.after.length)],
        before,
      )
    }),
  )
})

test('joined gives one list as it is, and several in order', () => {
  const list = [1, 2]
  assert.equal(joined([[], list, []]), list)
  assert.deepEqual(joined([[1], [2, 3], []]), [1, 2, 3])
  assert.deepEqual(joined([]), [])
})

test('replaced puts any number of items in the place of others, and leaves the list', () => {
  const list = ['a', 'b', 'c', 'd']
  assert.deepEqual(replaced(list, 1, 3, ['x', 'y']), ['a', 'x', 'y', 'd'])
  assert.deepEqual(replaced(list, 1, 3, []), ['a', 'd'])
  assert.deepEqual(replaced(list, 0, 0, ['x']), ['x', 'a', 'b', 'c', 'd'])
  assert.deepEqual(replaced(list, 4, 4, ['x']), ['a', 'b', 'c', 'd', 'x'])
  assert.deepEqual(list, ['a', 'b', 'c', 'd'])
})

test('difference knows what replaced changed: it turns one list into the other', () => {
  const list = fc.array(fc.nat(3), { maxLength: 6 })
  const edit = fc.record({ from: fc.nat(9), count: fc.nat(3), items: list, isKept: fc.boolean() })
  fc.assert(
    fc.property(list, fc.array(edit, { maxLength: 5 }), (first, edits) => {
      const lists: (readonly number[])[] = [first]
      for (const { from, count, items, isKept } of edits) {
        const before = isKept ? (lists.at(-1) ?? first) : first
        const start = Math.min(from, before.length)
        const end = Math.min(start + count, before.length)
        lists.push(replaced(before, start, end, items))
      }
      for (const before of lists) {
        for (const after of lists) assertLeadsTo(before, after)
      }
    }),
  )
})

/** Checks that the removed items are in the first list, and that the added items in their place make the second. */
function assertLeadsTo(before: readonly number[], after: readonly number[]): void {
  const { before: gone, after: come } = difference(before, after)
  const isFrom = (at: number): boolean =>
    sameText(before.slice(at, at + gone.length), gone) &&
    sameText([...before.slice(0, at), ...come, ...before.slice(at + gone.length)], after)
  assert.ok(
    before.concat(0).some((_, at) => isFrom(at)),
    `${before.join()} to ${after.join()}`,
  )
}

function sameText(a: readonly number[], b: readonly number[]): boolean {
  return a.join() === b.join()
}

test('RunningSum.over is the sum over the list, whatever it was asked before', () => {
  const list = fc.array(fc.nat(3), { maxLength: 6 })
  fc.assert(
    fc.property(fc.array(fc.tuple(list, fc.nat(5), fc.boolean())), (steps) => {
      const running = new RunningSum<number>((item) => item)
      let last: readonly number[] = []
      for (const [items, from, isMade] of steps) {
        const at = Math.min(from, last.length)
        last = isMade ? replaced(last, at, Math.min(at + 1, last.length), items) : items
        assert.equal(
          running.over(last),
          last.reduce((sum, each) => sum + each, 0),
        )
      }
    }),
  )
})
