// The three steps of a change of policy one by one, and a change during another one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const NAMES = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'
const CIDR = 'egress: [ { toCIDR: [ 192.0.2.0/24 ] } ]'
const EXCEPT = 'egressDeny: [ { toCIDRSet: [ { cidr: 192.0.2.0/24, except: [ 192.0.2.0/28 ] } ] } ]'

function mkNode(...specs: readonly string[]): Node {
  const node = new Node()
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  node.setPolicies(mkPolicies(...specs))
  node.learn(node.endpoint('a').id, 'n.x', ['192.0.2.1', '192.0.2.99'])
  return node
}

function set(node: Node, ...specs: readonly string[]): void {
  node.policies.setPolicies(mkPolicies(...specs), node.endpoints.registry)
}

/** Finishes all changes of labels and prefixes. */
function carry(node: Node): void {
  const { rederive, relabel, committer } = node.core
  while (!rederive.step(9) || !relabel.step(9) || rederive.pending);
  committer.commit()
}

test('PolicyControl widens labels under the old rules, then switches, then narrows', () => {
  const node = mkNode(NAMES, CIDR)
  set(node, NAMES, EXCEPT)
  carry(node)
  const verdicts = () => ['192.0.2.1', '192.0.2.99', '192.0.2.7'].map((to) => node.verdict('a', to))
  assert.deepEqual(verdicts(), ['allow', 'allow', 'allow'], 'the old rules')
  assert.ok(node.labelsOf('192.0.2.1').includes('cidr:192.0.2.0/28'), 'with the new labels')
  assert.equal(node.policies.advance(), true)
  node.core.committer.commit()
  assert.deepEqual(verdicts(), ['allow', 'deny', 'deny'], 'the new rules')
  const more = [node.policies.advance(), node.policies.advance(), node.policies.advance()]
  assert.deepEqual(more, [true, true, false])
  carry(node)
  assert.deepEqual(verdicts(), ['allow', 'deny', 'deny'])
})

test('PolicyControl.setPolicies during a change: the last call counts, at any step', () => {
  for (let steps = 0; steps < 4; steps++) {
    const node = mkNode(NAMES)
    set(node, CIDR, EXCEPT)
    for (let i = 0; i < steps; i++) {
      carry(node)
      node.policies.advance()
    }
    set(node, NAMES)
    node.settle()
    assert.equal(node.verdict('a', '192.0.2.1'), 'allow', `after ${steps} steps`)
    assert.equal(node.verdict('a', '192.0.2.7'), 'deny', `after ${steps} steps`)
    assert.deepEqual(
      [...node.core.selectors].map(({ text }) => text),
      ['*.x'],
    )
    assert.equal(node.rowOf('192.0.2.0/24'), 0, 'nothing of the change is left')
    assert.deepEqual(node.differences(), [])
  }
})

test('PolicyControl keeps a selector that two policies use until both are removed', () => {
  const node = mkNode(NAMES, `${NAMES}\ndescription: again`)
  const policies = node.policies.policies
  node.setPolicies(policies.slice(1))
  assert.equal(node.verdict('a', '192.0.2.1'), 'allow')
  node.setPolicies([])
  assert.equal(node.core.selectors.size, 0)
  assert.deepEqual(node.labelsOf('192.0.2.1'), [])
  assert.equal(node.core.names.mappings.slots.used, 2, 'the name stays known')
})

test('PolicyControl counts a revision for new policies only', () => {
  const node = mkNode(NAMES)
  const { revision } = node.policies
  node.policies.setPolicies([...node.policies.policies], node.endpoints.registry)
  assert.equal(node.policies.revision, revision, 'the same policies')
  set(node, NAMES)
  assert.equal(node.policies.revision, revision + 1)
})

test('PolicyControl shares compiled rules between endpoints that the same policies select', () => {
  const node = mkNode(NAMES)
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  const [a, b] = [node.endpoint('a').id, node.endpoint('b').id]
  assert.equal(node.policies.compiledOf(a), node.policies.compiledOf(b))
})
