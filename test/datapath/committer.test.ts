// The writes of one commit and their order, and entries that the datapath refuses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OWNER_ENDPOINT, OWNER_RESOURCE } from '../../src/ipcache/facts.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf, type NodeOptions } from '../support/nodes/node.ts'
import type { Write } from '../support/models/recorder.ts'

const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'

function mkNode(options: NodeOptions = {}, policy = WILD): Node {
  const node = new Node(options)
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(mkPolicies(policy))
  node.recorder.takeWrites()
  return node
}

function record(node: Node): readonly Write[] {
  const writes: Write[] = []
  node.recorder.onWrite = (write) => writes.push(write)
  return writes
}

test('Committer writes policy of a new identity before the first prefix that carries it, and removes in reverse', () => {
  const node = mkNode({ staticIdentities: 0 })
  const writes = record(node)
  node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  const { names } = node.core
  names.forget(1)
  node.core.committer.commit()
  node.core.committer.commit()
  const order = writes.map(({ section, action }) => `${section} ${action}`)
  assert.deepEqual(order, [
    'policy upsert',
    'policy upsert',
    'prefix upsert',
    'prefix remove',
    'policy remove',
    'policy remove',
  ])
  assert.deepEqual(node.differences(), [])
})

test('Committer counts a revision for each commit with a change, and writes nothing otherwise', () => {
  const node = mkNode()
  const before = node.core.committer.revision
  node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  assert.equal(node.core.committer.revision, before + 1)
  node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  node.learn(node.endpoint('b').id, 'c.x', ['192.0.2.1'])
  assert.equal(node.core.committer.revision, before + 1)
  assert.equal(node.recorder.takeWrites().commits, 1)
})

test('Committer writes only prefixes for a new address under a known identity', () => {
  const node = mkNode()
  const { id } = node.endpoint('a')
  node.learn(id, 'a.x', ['192.0.2.1'])
  const { allocator, policyMaps, committer } = node.core
  const gathered: string[] = []
  const takeChanges = allocator.takeChanges.bind(allocator)
  allocator.takeChanges = () => {
    gathered.push('identities')
    return takeChanges()
  }
  const { changes } = policyMaps
  const gather = changes.gather.bind(changes)
  changes.gather = () => {
    gathered.push('policy')
    gather()
  }
  const before = committer.revision
  node.learn(id, 'b.x', ['192.0.2.2'])
  assert.deepEqual([committer.revision, gathered], [before + 1, []])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchName: a.x } ] } ]'))
  assert.deepEqual(new Set(gathered), new Set(['identities', 'policy']))
  assert.deepEqual(node.differences(), [])
})

test('Committer leaves a refused prefix as it is in force, and writes it with the next try', () => {
  const node = mkNode()
  const { committer } = node.core
  node.recorder.refuse = ({ key }) => key === '192.0.2.1/32'
  const [row = 0, other = 0] = node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1', '192.0.2.2'])
  assert.deepEqual([committer.isApplied(row), committer.isApplied(other)], [false, true])
  assert.deepEqual([committer.refused, committer.failures], [1, 1])
  node.recorder.refuse = () => false
  committer.commit()
  assert.equal(committer.isApplied(row), false, 'no other try was requested')
  committer.retry()
  committer.commit()
  assert.deepEqual([committer.isApplied(row), committer.refused], [true, 0])
  assert.deepEqual(node.differences(), [])
})

test('Committer reports an address as not in force while the kernel has it in another class', () => {
  const node = mkNode()
  const { committer, ipcache, labelSets, owners } = node.core
  const own = labelSets.intern(['k8s:app=db'])
  const prefix = prefixOf('192.0.2.1')
  ipcache.addPrefixFact(prefix, OWNER_RESOURCE, owners.hold('resource'), own)
  committer.commit()
  const row = node.rowOf('192.0.2.1')
  assert.equal(committer.isApplied(row), true)
  // An endpoint with the same labels gets the address: the identity stays, and the class changes.
  node.recorder.refuse = ({ key }) => key === '192.0.2.1/32'
  ipcache.addPrefixFact(prefix, OWNER_ENDPOINT, owners.hold('endpoint'), own)
  committer.commit()
  const { wanted, applied } = ipcache.prefixes
  assert.equal(wanted[row], applied[row])
  assert.equal(committer.isApplied(row), false)
  node.recorder.refuse = () => false
  committer.retry()
  committer.commit()
  assert.equal(committer.isApplied(row), true)
  assert.deepEqual(node.differences(), [])
})

test('Committer keeps an address whose removal is refused, with its number', () => {
  const node = mkNode()
  const [row = 0] = node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  const id = node.identityOf('192.0.2.1')
  node.recorder.refuse = ({ action }) => action === 'remove'
  node.core.names.forget(1)
  node.core.committer.commit()
  assert.equal(node.core.ipcache.prefixes.applied[row], id, 'still in force')
  assert.notEqual(node.core.allocator.find(node.core.allocator.setOf(id) ?? 0), undefined)
  node.recorder.refuse = () => false
  node.core.committer.retry()
  node.core.committer.commit()
  assert.equal(node.rowOf('192.0.2.1'), 0)
  assert.deepEqual(node.differences(), [])
})

test('Committer reports an address as not in force while its identity lacks a policy entry', () => {
  const node = mkNode({ staticIdentities: 0 })
  const { committer } = node.core
  node.recorder.refuse = ({ section }) => section === 'policy'
  const [row = 0] = node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  assert.equal(committer.isApplied(row), false)
  const [second = 0] = node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.2'])
  assert.equal(committer.isApplied(second), false, 'nor a second address of it')
  node.recorder.refuse = () => false
  committer.commit()
  assert.deepEqual([committer.isApplied(row), committer.isApplied(second)], [true, true])
  assert.deepEqual(node.differences(), [])
})

test('Committer does so, too, when a policy map had no room for a static identity', () => {
  const policy = `egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchPattern: "*.y" } ] } ]`
  const node = mkNode({ policyEntries: 1 }, policy)
  const { committer } = node.core
  const id = node.endpoint('a').id
  const [first = 0] = node.learn(id, 'a.x', ['192.0.2.1'])
  const [row = 0] = node.learn(id, 'a.y', ['192.0.2.2'])
  assert.equal(node.core.policyMaps.overflows, 1)
  assert.equal(committer.isApplied(first), true)
  assert.equal(committer.isApplied(row), false)
  assert.equal(node.verdict('a', '192.0.2.2'), 'deny')
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.y" } ] } ]'))
  committer.retry()
  committer.commit()
  assert.equal(committer.isApplied(row), true, 'there is room again')
  assert.equal(node.verdict('a', '192.0.2.2'), 'allow')
})

test('Committer does not do so for a dynamic identity, which is left out when a policy map has no room', () => {
  const policy = `egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchPattern: "*.y" } ] } ]`
  const node = mkNode({ staticIdentities: 0, policyEntries: 1 }, policy)
  const [row = 0] = node.learn(node.endpoint('a').id, 'a.y', ['192.0.2.2'])
  assert.equal(node.core.policyMaps.overflows, 0)
  assert.equal(node.core.committer.isApplied(row), true)
  assert.equal(node.verdict('a', '192.0.2.2'), 'deny', 'with fewer labels')
})

test('Committer never restores a refused policy entry that is not wanted any more', () => {
  const node = mkNode({}, 'egress: [ { toEntities: [ world ] } ]')
  node.recorder.refuse = ({ section, action }) => section === 'policy' && action === 'upsert'
  node.setPolicies(mkPolicies('egress: [ { toEntities: [ host ] } ]'))
  assert.ok(node.core.committer.refused > 0)
  node.setPolicies(mkPolicies('egress: [ { toEntities: [ none ] } ]'))
  node.recorder.refuse = () => false
  for (let i = 0; i < 3; i++) node.core.committer.commit()
  assert.deepEqual([...node.recorder.policies.keys()], [])
  assert.equal(node.core.committer.refused, 0)
})

test('Committer never removes a policy entry that is wanted again after its removal was refused', () => {
  const node = mkNode({}, 'egress: [ { toEntities: [ world ] } ]')
  const before = [...node.recorder.policies.keys()]
  node.recorder.refuse = ({ section, action }) => section === 'policy' && action === 'remove'
  node.setPolicies(mkPolicies('egress: [ { toEntities: [ none ] } ]'))
  assert.ok(node.core.committer.refused > 0)
  node.recorder.refuse = () => false
  node.setPolicies(mkPolicies('egress: [ { toEntities: [ world ] } ]'))
  for (let i = 0; i < 3; i++) node.core.committer.commit()
  assert.deepEqual([...node.recorder.policies.keys()], before)
  assert.deepEqual(node.differences(), [])
})

test('Committer never restores a refused endpoint that was removed', () => {
  const node = new Node()
  node.recorder.refuse = ({ section, action }) => section === 'endpoint' && action === 'upsert'
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  assert.ok(node.core.committer.refused > 0, 'reported while it is refused')
  node.setEndpoints([])
  node.recorder.refuse = () => false
  for (let i = 0; i < 3; i++) node.core.committer.commit()
  assert.equal(node.recorder.endpoints.size, 0)
  assert.equal(node.core.committer.refused, 0)
})
