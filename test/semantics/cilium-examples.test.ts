// Examples of Cilium's documentation over the memory datapath. test/kernel has them over the kernel.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryMaker } from '../contract/memory-bench.ts'
import { exampleSuite } from '../support/labs/example-suite.ts'
import { EXAMPLES } from './cilium-examples.ts'

exampleSuite(memoryMaker)

test('at least 25 examples, nearly all with an allowed and a denied row', () => {
  assert.ok(EXAMPLES.length >= 25)
  const both = EXAMPLES.filter(({ allowed, denied, mayAsk = [] }) => {
    return allowed.length + mayAsk.length > 0 && denied.length > 0
  })
  assert.ok(both.length >= 25, `${both.length} have both`)
})
