// A change of a container prefix reaches every prefix inside it, in slices, also with other changes in between.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigFacts } from '../../src/enforcement/config-facts.ts'
import { OWNER_RESOURCE } from '../../src/ipcache/facts.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

function mkNode(hosts: number): { readonly node: Node; readonly facts: ConfigFacts } {
  const node = new Node()
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'))
  const addresses = Array.from({ length: hosts }, (_, i) => `198.18.0.${i}`)
  node.learn(node.endpoint('a').id, 'n.x', addresses)
  return { node, facts: new ConfigFacts({ core: node.core }) }
}

function resource(prefix: string, ...labels: readonly string[]) {
  return { prefix: prefixOf(prefix), kind: OWNER_RESOURCE, owner: prefix, labels }
}

test('Rederive carries a container’s labels down in bounded steps', () => {
  const { node, facts } = mkNode(50)
  const { rederive } = node.core
  assert.equal(rederive.pending, false)
  facts.apply([resource('198.18.0.0/24', 'k8s:a=1')])
  assert.equal(rederive.pending, true)
  let steps = 1
  while (!rederive.step(5)) steps++
  assert.ok(steps >= 10, `${steps} steps for 50 rows, 5 a step`)
  assert.deepEqual(node.labelsOf('198.18.0.49'), ['fqdn:*.x', 'k8s:a=1'])
  assert.deepEqual([rederive.pending, rederive.step(5)], [false, true])
})

test('Rederive handles containers from wide to narrow, also when the narrow ones were made first', () => {
  const { node, facts } = mkNode(1)
  const narrowFirst = [resource('198.18.0.0/28', 'k8s:c=3'), resource('198.18.0.0/16', 'k8s:b=2')]
  facts.apply(narrowFirst)
  node.settle()
  assert.deepEqual(node.labelsOf('198.18.0.0/28'), ['k8s:b=2', 'k8s:c=3'])
  facts.apply([...narrowFirst, resource('198.0.0.0/8', 'k8s:a=1', 'k8s:c=1')])
  node.settle()
  assert.deepEqual(node.labelsOf('198.18.0.0'), ['fqdn:*.x', 'k8s:a=1', 'k8s:b=2', 'k8s:c=3'])
})

test('Rederive begins again when a container changes while it works', () => {
  for (let at = 0; at < 14; at++) {
    const { node, facts } = mkNode(30)
    facts.apply([resource('198.18.0.0/24', 'k8s:a=1')])
    for (let i = 0; i < at; i++) node.core.rederive.step(3)
    facts.apply([resource('198.18.0.0/24', 'k8s:a=2'), resource('198.18.0.0/28', 'k8s:b=1')])
    while (!node.core.rederive.step(3));
    assert.deepEqual(
      node.labelsOf('198.18.0.3'),
      ['fqdn:*.x', 'k8s:a=2', 'k8s:b=1'],
      `at step ${at}`,
    )
    assert.deepEqual(node.labelsOf('198.18.0.29'), ['fqdn:*.x', 'k8s:a=2'], `at step ${at}`)
  }
})

test('A removed container leaves no row after the transition', () => {
  const { node, facts } = mkNode(3)
  const before = node.core.ipcache.prefixes.slots.used
  facts.apply([resource('198.18.0.0/24', 'k8s:a=1'), resource('198.18.0.0/16', 'k8s:b=1')])
  node.settle()
  facts.apply([])
  node.settle()
  assert.equal(node.core.ipcache.prefixes.slots.used, before)
  assert.deepEqual(node.labelsOf('198.18.0.1'), [
    'fqdn:*.x',
    'reserved:world',
    'reserved:world-ipv4',
  ])
  assert.deepEqual(node.differences(), [])
})

test('Rederive derives only the prefixes inside changed containers, if these are few', () => {
  const { node, facts } = mkNode(40)
  const wide = [resource('198.18.0.0/16', 'k8s:wide=1')]
  facts.apply(wide)
  node.settle()
  node.recorder.takeWrites()
  const { ipcache } = node.core
  const derived: string[] = []
  const derive = ipcache.deriver.derive.bind(ipcache.deriver)
  ipcache.deriver.derive = (...args) => {
    derived.push('derived')
    return derive(...args)
  }
  facts.apply([...wide, resource('198.18.0.0/30', 'k8s:narrow=1'), resource('2001:db8::/64')])
  node.settle()
  assert.equal(derived.length, 4 + 2 + 2, 'four addresses, two new prefixes twice')
  assert.equal(node.recorder.takeWrites().prefixUpserts, 4 + 2)
  facts.apply(wide)
  node.settle()
  assert.deepEqual(node.labelsOf('198.18.0.3'), ['fqdn:*.x', 'k8s:wide=1'])
  assert.deepEqual([node.rowOf('198.18.0.0/30'), node.differences()], [0, []])
})
