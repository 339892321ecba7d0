// Every example of `semantics/cilium-examples.ts` over a datapath, each in a world of its own.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BenchMaker } from '../../contract/bench.ts'
import { EXAMPLES } from '../../semantics/cilium-examples.ts'
import { ExampleNode } from '../nodes/example-node.ts'

export function exampleSuite(maker: BenchMaker): void {
  describe(`examples of Cilium's documentation, ${maker.name}`, () => {
    for (const example of EXAMPLES) {
      test(example.title, { skip: maker.unavailable ?? false }, () => {
        const bench = maker.make()
        try {
          const node = new ExampleNode(bench)
          const { from } = example
          node.apply(example.policies)
          for (const [name, addresses] of Object.entries(example.learned ?? {})) {
            node.learn(from, name, addresses)
          }
          for (const to of example.allowed) assert.equal(node.judge(from, to), 'pass', `to ${to}`)
          for (const to of example.denied) assert.equal(node.judge(from, to), 'drop', `to ${to}`)
          for (const name of example.mayAsk ?? []) assert.ok(node.mayAsk(from, name), name)
          for (const name of example.mayNotAsk ?? []) assert.ok(!node.mayAsk(from, name), name)
        } finally {
          bench.close()
        }
      })
    }
  })
}
