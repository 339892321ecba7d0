// docs/spec/semantics 3, the sentences about numbers: pre-allocation, static and dynamic identities, the bound, and the write counts that
// follow (invariants 3 and 8).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROW_DEGRADED } from '../../src/ipcache/ipcache.ts'
import { mkEndpoint, mkPolicies, Node, type NodeOptions } from '../support/nodes/node.ts'

const OVERLAP = `
egress:
- toFQDNs: [ { matchPattern: "*.x" }, { matchName: a.x } ]
- toCIDR: [ 0.0.0.0/0, "::/0" ]
  toPorts: [ { ports: [ { port: "80", protocol: TCP } ] } ]
`

function mkNode(policy: string, options: NodeOptions = {}): Node {
  const node = new Node(options)
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1', 'fd00:200::1'])])
  node.setPolicies(mkPolicies(policy))
  node.recorder.takeWrites()
  return node
}

test('With *.x, a.x and toCIDR 0.0.0.0/0 the first answer for a.x costs one prefix write, no allocation, no policy write', () => {
  for (const address of ['192.0.2.1', '2001:db8::1']) {
    const node = mkNode(OVERLAP)
    const { allocations } = node.core.allocator
    node.learn(node.endpoint('a').id, 'a.x', [address])
    const none = {
      policyUpserts: 0,
      policyRemovals: 0,
      prefixRemovals: 0,
      endpointUpserts: 0,
      endpointRemovals: 0,
    }
    assert.deepEqual(node.recorder.takeWrites(), { commits: 1, prefixUpserts: 1, ...none })
    assert.equal(node.core.allocator.allocations, allocations)
    assert.equal(node.verdict('a', address, 443), 'allow')
    node.learn(node.endpoint('a').id, 'b.x', [address.replace(/1$/, '2')])
    assert.deepEqual(
      node.recorder.takeWrites(),
      { commits: 1, prefixUpserts: 1, ...none },
      'nor for a name under *.x',
    )
  }
})

test('10,000 addresses of one name with 50 endpoints selected: one identity, no policy write, one prefix write each', () => {
  const node = new Node({ pairs: 20_000 })
  node.setEndpoints(
    Array.from({ length: 50 }, (_, i) => mkEndpoint(`e${i}`, [`10.200.0.${i + 1}`])),
  )
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'))
  const inUse = node.core.allocator.inUse
  node.recorder.takeWrites()
  const addresses = Array.from({ length: 10_000 }, (_, i) => `198.18.${i >> 8}.${i & 255}`)
  for (let at = 0; at < addresses.length; at += 1000) {
    node.learn(node.endpoint('e7').id, 's3.x', addresses.slice(at, at + 1000))
  }
  const writes = node.recorder.takeWrites()
  assert.deepEqual(
    [writes.policyUpserts, writes.policyRemovals, writes.prefixUpserts],
    [0, 0, 10_000],
  )
  assert.equal(new Set(addresses.map((address) => node.identityOf(address))).size, 1)
  assert.equal(node.core.allocator.inUse, inUse, 'it was pre-allocated')
  assert.equal(node.verdict('e49', '198.18.39.15'), 'allow')
})

test('Equal input changes nothing: no revision, no write, for answers, policies and endpoints alike (invariant 8)', () => {
  const node = mkNode(OVERLAP)
  const records = [mkEndpoint('a', ['10.200.0.1', 'fd00:200::1'])]
  node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  const { revision } = node.core.committer
  const policyRevision = node.policies.revision
  node.recorder.takeWrites()
  node.learn(node.endpoint('a').id, 'A.X.', ['192.0.2.1'])
  node.setEndpoints(records)
  node.setPolicies(node.policies.policies)
  assert.equal(node.policies.revision, policyRevision, 'the same policies')
  node.setPolicies(mkPolicies(OVERLAP))
  assert.equal(node.recorder.takeWrites().commits, 0, 'an unchanged file was read again')
  assert.equal(node.core.committer.revision, revision)
})

test('Pre-allocation holds for a matchName the union of all selectors that match it, for a pattern its own set, per family in use', () => {
  const node = new Node()
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1'])])
  node.setPolicies(
    mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchName: a.x } ] } ]'),
  )
  const sets = () =>
    [...node.core.allocator.views()]
      .filter(({ preallocated }) => preallocated)
      .map(({ set }) => node.core.labelSets.format(set).join(' '))
      .sort()
  const forFamily = (n: 4 | 6) => [
    `fqdn:*.x fqdn:a.x reserved:world reserved:world-ipv${n}`,
    `fqdn:*.x reserved:world reserved:world-ipv${n}`,
  ]
  assert.deepEqual(sets(), forFamily(4).sort())
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1', 'fd00::1'])])
  assert.deepEqual(sets(), [...forFamily(4), ...forFamily(6)].sort())
})

test('Pre-allocation includes the labels that selected prefixes of length 0 to 8 pass down, and no longer ones', () => {
  const node = mkNode(
    'egress: [ { toFQDNs: [ { matchName: a.x } ] }, { toCIDR: [ 10.0.0.0/8, 192.0.0.0/9 ] } ]',
  )
  const { allocations } = node.core.allocator
  node.learn(node.endpoint('a').id, 'a.x', ['10.9.9.9', '203.0.113.1'])
  assert.equal(node.core.allocator.allocations, allocations)
  node.learn(node.endpoint('a').id, 'a.x', ['192.0.2.1'])
  assert.equal(node.core.allocator.allocations, allocations + 1)
  assert.deepEqual(node.differences(), [])
})

test("Pre-allocation does not count an endpoint's wide prefix as part of the world", () => {
  const node = new Node()
  node.setEndpoints([
    mkEndpoint('a', ['10.200.0.1']),
    mkEndpoint('net', ['172.0.0.0/8'], ['k8s:app=net']),
  ])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchName: a.x } ] } ]'))
  const sets = [...node.core.allocator.views()].filter(({ preallocated }) => preallocated)
  assert.equal(sets.length, 1)
})

test('Pre-allocation stops at half of limits.static-identities; the first answer adds the rest, in the same commit', () => {
  const node = mkNode('egress: [ { toFQDNs: [ { matchName: a.x }, { matchName: b.x } ] } ]', {
    staticIdentities: 2,
  })
  const { allocations } = node.core.allocator
  node.learn(node.endpoint('a').id, 'b.x', ['2001:db8::1'])
  assert.equal(node.core.allocator.allocations, allocations + 1)
  assert.equal(node.recorder.takeWrites().commits, 1)
  assert.equal(node.verdict('a', '2001:db8::1'), 'allow')
})

test('A pre-allocated identity enters a policy map only while the map is under half; an answer that needs it adds it', () => {
  const policy =
    'egress: [ { toFQDNs: [ { matchName: a.x }, { matchName: b.x }, { matchName: c.x } ] } ]'
  const node = new Node({ policyEntries: 4 })
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1'])])
  node.setPolicies(mkPolicies(policy))
  assert.equal(node.core.policyMaps.sizeOf(node.endpoint('a').id), 2)
  for (const [i, name] of ['a.x', 'b.x', 'c.x'].entries()) {
    const [row = 0] = node.learn(node.endpoint('a').id, name, [`192.0.2.${i + 1}`])
    assert.equal(node.core.committer.isApplied(row), true, name)
    assert.equal(node.verdict('a', `192.0.2.${i + 1}`), 'allow', name)
  }
  assert.deepEqual(node.differences(), [])
})

test('At the bound of dynamic identities a set falls back to fewer fqdn labels, is counted, and gets its labels when numbers are free', () => {
  const node = mkNode(
    'egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchPattern: "a*.x" }, { matchPattern: "*a.x" } ] } ]',
    {
      dynamicIdentities: 1,
    },
  )
  const id = node.endpoint('a').id
  node.learn(id, 'ab.x', ['192.0.2.1'])
  const [row = 0] = node.learn(id, 'ba.x', ['192.0.2.2'])
  const set = () =>
    node.core.labelSets.format(node.core.allocator.setOf(node.identityOf('192.0.2.2')) ?? 0)
  const isDegraded = () => (node.core.ipcache.prefixes.flags[row]! & ROW_DEGRADED) !== 0
  assert.equal(node.core.allocator.dynamicInUse, 1)
  assert.equal(node.core.allocator.fallbacks, 1)
  assert.deepEqual(
    [isDegraded(), set().length],
    [true, 3],
    'one fqdn label and the two of the world',
  )
  assert.equal(node.verdict('a', '192.0.2.2'), 'allow')
  node.core.names.forget(1)
  node.core.committer.commit()
  node.core.committer.retry()
  node.core.committer.commit()
  assert.deepEqual(
    [isDegraded(), set()],
    [false, ['fqdn:*.x', 'fqdn:*a.x', 'reserved:world', 'reserved:world-ipv4']],
  )
  assert.deepEqual(node.differences(), [])
})

test('A name under one selector uses a pre-allocated set and cannot reach the bound', () => {
  const node = mkNode('egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]', {
    dynamicIdentities: 0,
  })
  const id = node.endpoint('a').id
  for (let i = 0; i < 200; i++) node.learn(id, `n${i}.x`, [`192.0.2.${i}`])
  assert.deepEqual([node.core.allocator.fallbacks, node.core.allocator.dynamicInUse], [0, 0])
})
