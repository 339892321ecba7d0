import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigFacts, type WantedFact } from '../../src/enforcement/config-facts.ts'
import { OWNER_POLICY, OWNER_RESOURCE } from '../../src/ipcache/facts.ts'
import { Node, prefixOf } from '../support/nodes/node.ts'

function fact(prefix: string, owner: string, ...labels: readonly string[]): WantedFact {
  const kind = labels[0]?.startsWith('cidr:') === true ? OWNER_POLICY : OWNER_RESOURCE
  return { prefix: prefixOf(prefix), kind, owner, labels }
}

test('ConfigFacts.apply makes the facts exactly the wanted ones, and writes nothing for equal ones', () => {
  const node = new Node()
  const facts = new ConfigFacts({ core: node.core })
  facts.apply([
    fact('192.0.2.0/24', 'r', 'k8s:a=1'),
    fact('198.51.100.0/24', 'p', 'cidr:198.51.100.0/24'),
  ])
  node.settle()
  node.recorder.takeWrites()
  facts.apply([
    fact('192.0.2.0/24', 'r', 'k8s:a=1'),
    fact('198.51.100.0/24', 'p', 'cidr:198.51.100.0/24'),
  ])
  node.settle()
  assert.equal(node.recorder.takeWrites().commits, 0)
  facts.apply([fact('192.0.2.0/24', 'r', 'k8s:a=2')])
  node.settle()
  assert.deepEqual(node.labelsOf('192.0.2.0/24'), ['k8s:a=2'])
  assert.equal(node.rowOf('198.51.100.0/24'), 0)
})

test('ConfigFacts.add adds and leaves the rest; a doubled fact is one', () => {
  const node = new Node()
  const facts = new ConfigFacts({ core: node.core })
  facts.apply([fact('192.0.2.0/24', 'p', 'cidr:192.0.2.0/24')])
  const more = fact('198.51.100.0/24', 'p', 'cidr:198.51.100.0/24')
  facts.add([more, more])
  node.settle()
  assert.deepEqual([node.core.ipcache.facts.slots.used, node.recorder.prefixes.size], [2, 2])
  facts.apply([])
  node.settle()
  assert.deepEqual([node.core.ipcache.facts.slots.used, node.recorder.prefixes.size], [0, 0])
})

test('ConfigFacts counts facts that find no room, and adds them when there is room', () => {
  const node = new Node({ pairs: 1, configuredPrefixes: 1 })
  const facts = new ConfigFacts({ core: node.core })
  const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((text) => fact(text, 'r', 'k8s:a=1'))
  facts.apply(all)
  node.settle()
  assert.deepEqual([facts.refused, node.recorder.prefixes.size], [1, 2])
  facts.apply(all.slice(1))
  node.settle()
  facts.apply(all.slice(1))
  node.settle()
  assert.equal(node.recorder.prefixes.has('192.0.2.3/32'), true)
})

test('ConfigFacts.replace makes the facts of one owner the wanted ones and leaves those of others', () => {
  const node = new Node()
  const facts = new ConfigFacts({ core: node.core })
  const [first, second] = ['192.0.2.0/24', '198.51.100.0/24']
  facts.apply([fact(first, 'r', 'k8s:a=1'), fact(first, 's', 'k8s:b=1')])
  const steps = [
    { owner: 'r', wanted: [fact(second, 'r', 'k8s:a=1')], after: [['k8s:b=1'], ['k8s:a=1']] },
    { owner: 'r', wanted: [fact(second, 'r', 'k8s:a=2')], after: [['k8s:b=1'], ['k8s:a=2']] },
    { owner: 's', wanted: [], after: [[], ['k8s:a=2']] },
    { owner: 'nobody', wanted: [], after: [[], ['k8s:a=2']] },
    { owner: 'r', wanted: [], after: [[], []] },
  ]
  for (const { owner, wanted, after } of steps) {
    assert.equal(facts.replace(OWNER_RESOURCE, owner, wanted), true)
    node.settle()
    assert.deepEqual([node.labelsOf(first), node.labelsOf(second)], after)
  }
  assert.equal(node.core.ipcache.facts.slots.used, 0)
})

test('ConfigFacts.replace reports that a fact found no room, and adds it in a later call when there is room', () => {
  const node = new Node({ pairs: 1, configuredPrefixes: 1 })
  const facts = new ConfigFacts({ core: node.core })
  const all = ['192.0.2.1', '192.0.2.2'].map((text) => fact(text, 'r', 'k8s:a=1'))
  const other = fact('192.0.2.9', 's', 'k8s:a=1')
  facts.apply([other])
  assert.equal(facts.replace(OWNER_RESOURCE, 'r', all), false)
  assert.equal(facts.replace(OWNER_RESOURCE, 's', []), true)
  node.settle()
  assert.equal(facts.replace(OWNER_RESOURCE, 'r', all), true)
  node.settle()
  assert.deepEqual([facts.refused, node.recorder.prefixes.size], [1, 2])
})
