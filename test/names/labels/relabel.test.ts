import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkEndpoint, mkPolicies, Node, patternOf } from '../../support/nodes/node.ts'

function mkNode(): Node {
  const node = new Node()
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  const id = node.endpoint('a').id
  for (let i = 0; i < 50; i++) node.learn(id, `n${i}.x`, [`192.0.2.${i}`, `198.51.100.${i}`])
  return node
}

test('Relabel gives known names the labels of a new selector, and removes those of a removed one', () => {
  const node = mkNode()
  const { relabel, selectors, selectorLabels } = node.core
  const { selector } = selectors.acquire({ kind: 'fqdn', pattern: patternOf('n1*.x') })
  assert.equal(relabel.pending, false)
  assert.ok(selector.kind === 'fqdn')
  selectorLabels.ensure(selector)
  selectorLabels.ensure(selector)
  assert.equal(relabel.pending, true)
  let steps = 0
  while (!relabel.step(7)) steps++
  assert.ok(steps >= 150 / 7 - 2, 'names and mappings, seven a step')
  node.core.committer.commit()
  assert.ok(node.labelsOf('198.51.100.17').includes('fqdn:n1*.x'))
  assert.deepEqual(node.labelsOf('192.0.2.2'), [])
  assert.deepEqual([relabel.pending, relabel.step(7)], [false, true])
  selectorLabels.drop(selector)
  while (!relabel.step(7));
  node.core.committer.commit()
  assert.deepEqual(node.labelsOf('198.51.100.17'), [])
  assert.deepEqual([...node.recorder.prefixes.keys()], ['10.0.0.1/32'])
})

test('Relabel starts again when selectors change during its work', () => {
  const node = mkNode()
  const { relabel, selectors, selectorLabels } = node.core
  const add = (text: string): void => {
    const { selector } = selectors.acquire({ kind: 'fqdn', pattern: patternOf(text) })
    if (selector.kind === 'fqdn') selectorLabels.ensure(selector)
  }
  add('n1.x')
  for (let i = 0; i < 10; i++) relabel.step(10)
  add('n2.x')
  while (!relabel.step(10));
  assert.ok(node.labelsOf('192.0.2.1').includes('fqdn:n1.x'))
  assert.ok(node.labelsOf('192.0.2.2').includes('fqdn:n2.x'))
})

test('Relabel leaves a name to an answer, which updates it at once', () => {
  const node = mkNode()
  node.policies.setPolicies(
    mkPolicies('egress: [ { toFQDNs: [ { matchName: n7.x } ] } ]'),
    node.endpoints.registry,
  )
  node.learn(node.endpoint('a').id, 'n7.x', ['203.0.113.7'])
  assert.ok(node.labelsOf('203.0.113.7').includes('fqdn:n7.x'), 'before any relabelling')
  assert.deepEqual(node.labelsOf('192.0.2.7'), [], 'its other addresses follow in the pass')
  node.settle()
  assert.ok(node.labelsOf('192.0.2.7').includes('fqdn:n7.x'))
})
