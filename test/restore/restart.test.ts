// A start over what an earlier daemon left in force: the node adds first, and then removes everything older (CFP-28427 "Key question:
// upgrades & downgrades?", upgrade without a checkpoint).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyKeyText } from '../../src/reconcile/stale-entries.ts'
import { endpointId, identity } from '../../src/core/ids.ts'
import { addressNumber, mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const RECORDS = [
  mkEndpoint('a', ['10.200.0.1', 'fd00::1'], ['k8s:app=a']),
  mkEndpoint('b', ['10.200.0.2']),
]
const SPECS = [
  'egress: [ { toCIDR: [ 203.0.113.0/24 ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] } ]',
  'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]',
  'egress: [ { toCIDR: [ 198.51.100.0/24, "2001:db8::/32" ] } ]',
]

function start(specs: readonly string[], recorder?: Node['recorder'], records = RECORDS): Node {
  const node = new Node(recorder === undefined ? {} : { recorder })
  node.policies.setPolicies(mkPolicies(...specs), node.endpoints.registry)
  node.setEndpoints(records)
  return node
}

test('Restart leaves exactly what the new daemon wants, whatever the old one had in force', () => {
  const old = start(SPECS)
  old.learn(old.endpoint('a').id, 'a.x', ['192.0.2.1', '2001:db8:9::1'])
  const next = start([SPECS[2] ?? '', SPECS[0] ?? ''], old.recorder)
  assert.ok(
    next.differences().every((each) => each.startsWith('too much')),
    'additions only, before',
  )
  next.takeOver()
  assert.deepEqual(next.differences(), [])
  assert.equal(next.recorder.prefixes.has('192.0.2.1/32'), false)
})

test('A CIDR that is allowed only on one port stays so during a start with the policies in another order', () => {
  const old = start(SPECS)
  const verdicts = (node: Node) =>
    [443, 80].flatMap((port) =>
      ['203.0.113.7', '198.51.100.7'].map((to) => node.verdict('a', to, port)),
    )
  const before = verdicts(old)
  assert.deepEqual(before, ['allow', 'allow', 'deny', 'allow'])
  const endpoint = old.endpoint('a')
  const seen = new Set<string>()
  old.recorder.onWrite = () => {
    const to = { '203.0.113.7': 443, '198.51.100.7': 80 }
    for (const [address, port] of Object.entries(to))
      seen.add(`${address} ${old.verdict('a', address, port)}`)
    seen.add(`203.0.113.7:80 ${old.verdict('a', '203.0.113.7', 80)}`)
  }
  const next = start([...SPECS].reverse(), old.recorder)
  next.takeOver()
  assert.equal(next.endpoint('a').id, endpoint.id, 'found again by its hook, with its connections')
  assert.deepEqual([...seen].sort(), [
    '198.51.100.7 allow',
    '203.0.113.7 allow',
    '203.0.113.7:80 deny',
  ])
  assert.deepEqual(verdicts(next), before)
})

test('Restart removes missing endpoints, and gives an endpoint at another place a new number', () => {
  const old = start(SPECS)
  const moved = [mkEndpoint('a', ['10.200.0.9'])]
  const next = start(SPECS, old.recorder, moved)
  assert.ok(next.endpoint('a').id > 2, 'above every number that is in force')
  next.takeOver()
  assert.deepEqual([...next.recorder.endpoints.keys()], [next.endpoint('a').id])
  assert.deepEqual(next.differences(), [])
})

test('Restart leaves nothing in the scopes of endpoints, found again or not, that was not learned again', () => {
  const scoped = { learning: 'endpoint' } as const
  const old = new Node(scoped)
  old.policies.setPolicies(mkPolicies(...SPECS), old.endpoints.registry)
  old.setEndpoints(RECORDS)
  const [a, b] = ['a', 'b'].map((name) => old.endpoint(name).id)
  old.learn(old.endpoint('a').id, 'a.x', ['192.0.2.1', '192.0.2.2'])
  old.learn(old.endpoint('b').id, 'b.x', ['192.0.2.2'])
  assert.ok(old.recorder.prefixes.has(`192.0.2.2/32@${b}`))
  const next = new Node({ ...scoped, recorder: old.recorder })
  next.policies.setPolicies(mkPolicies(...SPECS), next.endpoints.registry)
  next.setEndpoints(RECORDS.slice(0, 1))
  assert.equal(next.endpoint('a').id, a, 'adopted')
  next.learn(next.endpoint('a').id, 'a.x', ['192.0.2.1'])
  next.takeOver()
  assert.deepEqual(next.differences(), [])
  assert.deepEqual(
    [...next.recorder.prefixes.keys()].filter((key) => key.includes('@')),
    [`192.0.2.1/32@${a}`],
  )
  assert.deepEqual(
    ['192.0.2.1', '192.0.2.2'].map((to) => next.verdict('a', to)),
    ['allow', 'deny'],
  )
})

test('Numbers stay apart over many starts', () => {
  let recorder = start(SPECS).recorder
  for (let i = 0; i < 5; i++) {
    const carried = new Set([...recorder.prefixes.values()].map((place) => place.identity))
    const next = start(SPECS, recorder)
    next.learn(next.endpoint('a').id, 'a.x', [addressNumber(4, i)])
    for (const { id } of next.core.allocator.views()) assert.ok(!carried.has(id))
    next.takeOver()
    assert.deepEqual(next.differences(), [])
    recorder = next.recorder
  }
})

test('policyKeyText is the same for equal keys', () => {
  const key = {
    endpoint: endpointId(1),
    identity: identity(9),
    protocol: 6,
    port: 443,
    portBits: 16,
  }
  assert.equal(policyKeyText(key), '1 9 6 443/16')
})
