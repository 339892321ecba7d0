import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { difference, joined } from '../../src/core/list-difference.ts'

test('difference gives what stands between the common beginning and the common end', () => {
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

test('difference leaves nothing out: the common parts and it are both lists', () => {
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
