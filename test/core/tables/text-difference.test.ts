import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { commonEnd, commonStart, linesIn } from '../../../src/core/tables/text-difference.ts'

const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })

test('commonStart is the longest common start of both texts', () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const length = commonStart(a, b)
      assert.equal(a.slice(0, length), b.slice(0, length))
      const isEnd = length === a.length || length === b.length
      assert.ok(isEnd || a[length] !== b[length])
    }),
  )
})

test('commonEnd is the longest common end of both texts after a common start', () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const start = commonStart(a, b)
      const length = commonEnd(a, b, start)
      assert.equal(a.slice(a.length - length), b.slice(b.length - length))
      const isAll = length === Math.min(a.length, b.length) - start
      assert.ok(isAll || a.at(-1 - length) !== b.at(-1 - length))
    }),
  )
})

test('linesIn counts the ends of lines', () => {
  assert.deepEqual(['', 'a', '\n', 'a\nb\n'].map(linesIn), [0, 0, 1, 2])
})
