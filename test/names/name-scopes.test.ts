// Labels in endpoints' own scopes, through answers, changes of selectors and of scopes, and bounds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointId } from '../../src/core/ids.ts'
import { LabelSets } from '../../src/core/labels.ts'
import { OWNER_POLICY } from '../../src/ipcache/facts.ts'
import { NameScopes } from '../../src/names/name-scopes.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf, type NodeOptions } from '../support/nodes/node.ts'
import { validateCore } from '../support/models/validate-core.ts'

const E1 = endpointId(1)
const E2 = endpointId(2)
const WORLD = ['reserved:world', 'reserved:world-ipv4']
const ALL_X = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'

function mkNode(options: NodeOptions = {}, ...specs: readonly string[]): Node {
  const node = new Node({ learning: 'endpoint', ...options })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(mkPolicies(ALL_X, ...specs))
  node.recorder.takeWrites()
  return node
}

function forgetAll(node: Node, endpoint: typeof E1): void {
  const { names } = node.core
  for (let entry = 0; (entry = names.rows.orders.firstOf(endpoint)) !== 0;) names.forget(entry)
  node.core.committer.commit()
}

function labels(node: Node, address: string): readonly (readonly string[])[] {
  return [0, E1, E2].map((scope) => node.labelsOf(address, scope))
}

test("NameScopes gives the labels of a name to the node's or the endpoint's scope, and reserved:named to a named endpoint", () => {
  const sets = new LabelSets()
  const name = sets.intern(['fqdn:a.x'])
  for (const learning of ['node', 'endpoint'] as const) {
    const scopes = new NameScopes({ learning, labelSets: sets })
    const own = learning === 'endpoint' ? ['fqdn:a.x'] : []
    assert.deepEqual(sets.format(scopes.nodeLabels(name)), learning === 'node' ? ['fqdn:a.x'] : [])
    assert.deepEqual(sets.format(scopes.ownLabels(E1, name)), own)
    assert.deepEqual([scopes.setNamed(E1, true), scopes.setNamed(E1, true)], [true, false])
    assert.deepEqual(sets.format(scopes.ownLabels(E1, name)), [...own, 'reserved:named'])
    assert.deepEqual(sets.format(scopes.ownLabels(E2, name)), own)
    assert.deepEqual([scopes.inUse, scopes.hasNamed], [true, true])
    scopes.setNamed(E1, false)
    assert.deepEqual([scopes.inUse, scopes.hasNamed], [learning === 'endpoint', false])
  }
})

test('NameCache writes one entry in the scope of the endpoint that asks, and none for the node', () => {
  const node = mkNode()
  const [row = 0] = node.learn(E1, 'a.x', ['192.0.2.1'])
  assert.equal(row, node.rowOf('192.0.2.1', E1), 'the row that the endpoint sees')
  assert.ok(node.core.committer.isApplied(row))
  assert.deepEqual(node.recorder.takeWrites().prefixUpserts, 1)
  assert.deepEqual(labels(node, '192.0.2.1'), [[], ['fqdn:*.x', ...WORLD], []])
  const known = node.identityOf('192.0.2.1', E1)
  node.learn(E2, 'b.x', ['192.0.2.1'])
  assert.equal(
    node.identityOf('192.0.2.1', E2),
    known,
    'one number for one label set, in any scope',
  )
  const writes = node.recorder.takeWrites()
  assert.deepEqual([writes.prefixUpserts, writes.policyUpserts], [1, 0], 'and no policy write')
  forgetAll(node, E1)
  assert.deepEqual(labels(node, '192.0.2.1'), [[], [], ['fqdn:*.x', ...WORLD]])
  forgetAll(node, E2)
  assert.equal(node.rowOf('192.0.2.1'), 0)
  assert.equal(node.core.ipcache.prefixes.scoped.count, 0)
  assert.deepEqual(node.differences(), [])
})

test('NameCache uses the row of an endpoint’s own scope also for a name that adds no label to it', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1'])
  const [own, other] = [E1, E2].map((each) => node.learn(each, 'n.y', ['192.0.2.1'])[0])
  assert.equal(own, node.rowOf('192.0.2.1', E1))
  assert.equal(other, node.rowOf('192.0.2.1'))
})

test('IpCache applies a change of the node’s prefixes in every scope', () => {
  const rows: readonly (readonly [spec: string, label: string, reason: string])[] = [
    ['egressDeny: [ { toCIDR: [ 192.0.2.1/32 ] } ]', 'cidr:192.0.2.1/32', 'the same address'],
    ['egressDeny: [ { toCIDR: [ 192.0.2.0/24 ] } ]', 'cidr:192.0.2.0/24', 'a prefix around it'],
  ]
  for (const [spec, label, reason] of rows) {
    const node = mkNode()
    for (const each of [E1, E2]) node.learn(each, 'a.x', ['192.0.2.1', '192.0.2.77'])
    const policies = node.policies.policies
    node.setPolicies([...policies, ...mkPolicies(spec)])
    const own = [label, 'fqdn:*.x', ...WORLD]
    assert.deepEqual(labels(node, '192.0.2.1').slice(1), [own, own], reason)
    assert.equal(node.verdict('a', '192.0.2.1'), 'deny', reason)
    node.setPolicies(policies)
    const before = ['fqdn:*.x', ...WORLD]
    assert.deepEqual(labels(node, '192.0.2.1'), [[], before, before], reason)
    assert.deepEqual(labels(node, '192.0.2.77'), [[], before, before], reason)
    assert.equal(node.verdict('a', '192.0.2.1'), 'allow', reason)
    assert.deepEqual(node.differences(), [], reason)
    validateCore(node.core)
  }
})

test('IpCache takes the class of a scoped address from the node’s prefixes', () => {
  const node = mkNode({ nodeAddresses: ['192.0.2.9'] })
  node.learn(E1, 'a.x', ['10.0.0.2', '192.0.2.9'])
  assert.deepEqual(node.labelsOf('10.0.0.2', E1), ['fqdn:*.x'], 'an endpoint is not the world')
  assert.deepEqual(
    node.labelsOf('192.0.2.9', E1),
    [],
    'the node is guarded, and gets no row in the scope',
  )
  assert.deepEqual(node.differences(), [])
})

test('Relabel updates the facts of every scope, in bounded steps', () => {
  const node = mkNode()
  const addresses = Array.from({ length: 40 }, (_, i) => `192.0.2.${i}`)
  for (const each of [E1, E2]) node.learn(each, 'n.y', addresses)
  assert.deepEqual(labels(node, '192.0.2.7'), [[], [], []])
  node.policies.setPolicies(
    mkPolicies(ALL_X, 'egress: [ { toFQDNs: [ { matchName: n.y } ] } ]'),
    node.endpoints.registry,
  )
  let steps = 0
  while (!node.core.relabel.step(8)) steps++
  assert.ok(steps >= 10, `${steps} steps for 80 entries, eight a step`)
  node.settle()
  const own = ['fqdn:n.y', ...WORLD]
  assert.deepEqual(labels(node, '192.0.2.7'), [[], own, own])
  node.setPolicies(mkPolicies(ALL_X))
  assert.deepEqual(labels(node, '192.0.2.7'), [[], [], []])
  assert.deepEqual(node.differences(), [])
  validateCore(node.core)
})

test('NameCache.setNamed shows the node’s labels and its own for addresses learned before and after', () => {
  const node = mkNode({ learning: 'node' })
  node.learn(E1, 'n.y', ['192.0.2.1'])
  node.core.names.setNamed(E1, true)
  assert.equal(node.core.relabel.pending, true)
  node.settle()
  assert.deepEqual(labels(node, '192.0.2.1'), [[], ['reserved:named', ...WORLD], []])
  node.learn(E1, 'n.y', ['192.0.2.2'])
  assert.deepEqual(labels(node, '192.0.2.2'), [[], ['reserved:named', ...WORLD], []])
  node.learn(E2, 'a.x', ['192.0.2.2'])
  const both = ['fqdn:*.x', 'reserved:named', ...WORLD]
  assert.deepEqual(labels(node, '192.0.2.2'), [['fqdn:*.x', ...WORLD], both, []])
  assert.deepEqual(node.differences(), [], 'in the commit of that answer')
  forgetAll(node, E2)
  assert.deepEqual(labels(node, '192.0.2.2'), [[], ['reserved:named', ...WORLD], []])
  node.core.names.setNamed(E1, false)
  node.settle()
  assert.equal(node.core.ipcache.prefixes.scoped.count, 0)
  assert.deepEqual(node.differences(), [])
  validateCore(node.core)
})

test('NameCache.setNamed reads no entry for an endpoint without entries', () => {
  const node = mkNode({ learning: 'node' })
  node.learn(E2, 'a.x', ['192.0.2.1'])
  node.core.names.setNamed(E1, true)
  assert.equal(node.core.relabel.pending, false)
})

test('NameCache undoes everything when an address has no room for its fact in the endpoint’s scope', () => {
  const node = mkNode({ pairs: 4, configuredPrefixes: 4 })
  const { ipcache, labelSets, names } = node.core
  const set = labelSets.intern(['cidr:203.0.113.0/24'])
  let owner = 1000
  while (ipcache.addPrefixFact(prefixOf('203.0.113.0/24'), OWNER_POLICY, owner, set) !== 0) owner++
  assert.deepEqual(node.learn(E1, 'a.x', ['192.0.2.1']), [0])
  assert.equal(names.boundHits, 1)
  const used = [names.names, names.mappings, names.entries].map(({ slots }) => slots.used)
  assert.deepEqual(used, [0, 0, 0])
  assert.deepEqual([node.rowOf('192.0.2.1'), ipcache.prefixes.scoped.count], [0, 0])
})

test('NameCache holds as many scoped addresses as there are entries, beside those of the configuration', () => {
  const node = mkNode({ pairs: 8, configuredPrefixes: 4 })
  const addresses = Array.from({ length: 9 }, (_, i) => `192.0.2.${i}`)
  const rows = node.learn(E1, 'a.x', addresses)
  assert.equal(rows.filter((row) => row !== 0).length, 8)
  assert.equal(node.core.ipcache.prefixes.scoped.count, 8)
  assert.deepEqual(node.differences(), [])
})
