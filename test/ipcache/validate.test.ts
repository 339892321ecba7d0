// The deep check can fail: each row damages one of the counts that it checks.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OWNER_RESOURCE } from '../../src/ipcache/facts.ts'
import { validateIpCache } from '../../src/ipcache/validate.ts'
import { Node, prefixOf } from '../support/nodes/node.ts'

function mkNode(): Node {
  const node = new Node({ pairs: 8, configuredPrefixes: 8 })
  const { ipcache, labelSets } = node.core
  for (const [text, label] of [
    ['192.0.2.0/24', 'k8s:a=1'],
    ['192.0.2.1', 'k8s:b=1'],
  ] as const) {
    ipcache.addPrefixFact(prefixOf(text), OWNER_RESOURCE, 1, labelSets.intern([label]))
  }
  node.settle()
  return node
}

function validate(node: Node): void {
  const { ipcache, labelSets, allocator } = node.core
  validateIpCache(ipcache, labelSets, allocator, { labelSets: [], rows: [] })
}

const ROWS: readonly (readonly [what: string, spoil: (node: Node) => void, message: RegExp])[] = [
  ['users of a row', ({ core }) => (core.ipcache.prefixes.users[1] = 7), /users/],
  [
    'a fact of another row',
    ({ core }) => (core.ipcache.facts.prefix[1] = 2),
    /in the list of its row/,
  ],
  [
    'a list that ends early',
    ({ core }) => (core.ipcache.prefixes.firstFact[1] = 0),
    /facts are in lists/,
  ],
  [
    'a lost reference of an identity',
    (node) => node.core.allocator.release(node.identityOf('192.0.2.1')),
    /references/,
  ],
  [
    'a lost reference of a label set',
    ({ core }) => core.labelSets.release(core.ipcache.prefixes.own[1] ?? 0),
    /is kept/,
  ],
  ['stale labels', spoilLabels, /labels of its facts/],
]

function spoilLabels({ core }: Node): void {
  const { prefixes } = core.ipcache
  core.labelSets.retain(prefixes.own[2] ?? 0)
  core.labelSets.release(prefixes.derived[2] ?? 0)
  prefixes.derived[2] = prefixes.own[2] ?? 0
}

test('validateIpCache accepts undamaged tables', () => validate(mkNode()))

for (const [what, spoil, message] of ROWS) {
  test(`validateIpCache finds ${what}`, () => {
    const node = mkNode()
    spoil(node)
    assert.throws(() => validate(node), message)
  })
}
