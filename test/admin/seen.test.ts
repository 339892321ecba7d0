import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyRows } from '../../src/admin/views/policies.ts'
import { selectorRows } from '../../src/admin/views/selectors.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { connect, explainOn } from '../support/nodes/explain.ts'
import { mkPolicies, type Node } from '../support/nodes/node.ts'
import { mkPolicyNode } from '../support/nodes/policy-node.ts'

const POLICY =
  'egress: [ { toFQDNs: [ { matchName: a.x }, { matchPattern: "*.y" }, { matchName: b.x } ] } ]'

function seenOf(node: Node): readonly string[] {
  const rows = [...selectorRows(mkAdmin(node).state)]
  return rows.flatMap((row) => (row?.seen === true ? [row.selector] : []))
}

test('selectorRows and policyRows show which selectors matched an asked name', () => {
  const node = mkPolicyNode([POLICY])
  assert.deepEqual(seenOf(node), [], 'nothing was asked')
  explainOn(node, connect({ name: 'b.x' }))
  assert.deepEqual(seenOf(node), [], 'a question to explain is no query')
  const { id } = node.endpoint('a')
  node.learn(id, 'a.x', ['198.51.100.1'])
  node.learn(id, 'www.y', ['198.51.100.2'])
  node.learn(id, 'other.example', ['198.51.100.3'])
  assert.deepEqual(seenOf(node), ['a.x', '*.y'])
  const [row] = policyRows(mkAdmin(node).state)
  assert.deepEqual(row?.unseen, ['b.x'])
})

test('selectorRows still shows it when the name is forgotten, until the selector is removed', () => {
  const node = mkPolicyNode([POLICY])
  node.learn(node.endpoint('a').id, 'a.x', ['198.51.100.1'], 1)
  node.clock.advance(1_000_000)
  while (!node.core.expiry.step(1000));
  node.core.committer.commit()
  assert.equal(node.rowOf('198.51.100.1'), 0, 'it is forgotten')
  assert.deepEqual(seenOf(node), ['a.x'])
  node.setPolicies(mkPolicies(`${POLICY}\n`, 'egress: [ {} ]'))
  assert.deepEqual(seenOf(node), ['a.x'], 'another policy, the same selector')
  node.setPolicies([])
  node.setPolicies(mkPolicies(POLICY))
  assert.deepEqual(seenOf(node), [])
})
