// FlowFold: which flows are equal, when they are printed, and in which order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlowFold } from '../../src/cli/flows/flow-fold.ts'
import { textOf } from '../../src/cli/fields.ts'
import type { FlowFields } from '../../src/cli/flows/flow-fields.ts'

const at = (seconds: number): string => new Date(seconds * 1000).toISOString()

function mkFold(isEarly: boolean) {
  const printed: string[] = []
  const print = ({ name, count, last }: FlowFields): void => {
    printed.push(
      count === undefined
        ? textOf(name)
        : `${textOf(name)} ${textOf(count)} ${textOf(last).slice(17, 19)}`,
    )
  }
  const fold = new FlowFold({ print, windowMs: 10_000, isEarly })
  let number = 0
  const add = (seconds: number, name: string, more: FlowFields = {}): void =>
    fold.add({ number: number++, time: at(seconds), kind: 'denied', name, ...more })
  return { fold, add, printed }
}

test('FlowFold prints each group once, in the order of the first flows', () => {
  const { fold, add, printed } = mkFold(false)
  add(1, 'a')
  add(2, 'b')
  add(3, 'a')
  add(4, 'b', { kind: 'answered' })
  assert.deepEqual(printed, [])
  add(11.5, 'c')
  assert.deepEqual(printed, ['a 2 03'], 'its window is over')
  add(12, 'a')
  fold.end()
  assert.deepEqual(printed, ['a 2 03', 'b', 'b', 'c', 'a'])
})

test('FlowFold adds up the counts of flows that stand for several', () => {
  const { fold, add, printed } = mkFold(false)
  add(1, 'a', { count: 7, last: at(5) })
  add(6, 'a')
  fold.end()
  assert.deepEqual(printed, ['a 8 06'])
})

test('FlowFold prints the first flow at once for a reader that follows, and then the number of its repetitions', () => {
  const { fold, add, printed } = mkFold(true)
  add(1, 'a')
  add(2, 'a')
  add(3, 'a')
  add(4, 'b')
  assert.deepEqual(printed, ['a', 'b'])
  fold.passTime(11_000)
  assert.deepEqual(printed, ['a', 'b', 'a 2 03'])
  fold.passTime(30_000)
  assert.deepEqual(printed, ['a', 'b', 'a 2 03'], 'b was not repeated')
})
