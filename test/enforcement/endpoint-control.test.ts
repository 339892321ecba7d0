import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NAME_DENIED } from '../../src/enforcement/dns-verdicts.ts'
import { UDP } from '../../src/core/protocol.ts'
import { addressNumber, mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

function mkNode(): Node {
  const node = new Node()
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'], ['k8s:app=a']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(
    mkPolicies(
      'endpointSelector: { matchLabels: { app: a } }\negress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]',
    ),
  )
  return node
}

test('EndpointControl.apply writes an endpoint with rules, labels and address in one commit, and equal ones not again', () => {
  const node = mkNode()
  const { id } = node.endpoint('a')
  assert.deepEqual(node.recorder.endpoints.get(id)?.sources, [prefixOf('10.0.0.1')])
  assert.deepEqual(node.labelsOf('10.0.0.1'), ['k8s:app=a'])
  assert.deepEqual(
    [node.verdict('a', '192.0.2.1'), node.verdict('b', '192.0.2.1')],
    ['deny', 'allow'],
  )
  node.recorder.takeWrites()
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'], ['k8s:app=a']), mkEndpoint('b', ['10.0.0.2'])])
  assert.equal(node.recorder.takeWrites().commits, 0)
})

test('EndpointControl keeps number and generation when only labels change, and applies the other policies', () => {
  const node = mkNode()
  const { id, generation } = node.endpoint('b')
  node.learn(id, 'n.x', ['192.0.2.1'])
  node.setEndpoints([
    mkEndpoint('a', ['10.0.0.1'], ['k8s:app=a']),
    mkEndpoint('b', ['10.0.0.2'], ['k8s:app=a']),
  ])
  assert.deepEqual([node.endpoint('b').id, node.endpoint('b').generation], [id, generation])
  assert.deepEqual(
    [node.verdict('b', '192.0.2.1'), node.verdict('b', '192.0.2.2')],
    ['allow', 'deny'],
  )
  assert.equal(node.core.names.entries.slots.used, 1, 'its learned entries stay')
})

test('EndpointControl gives a moved endpoint a new number: its entries and verdicts are removed (docs/spec/semantics 5)', () => {
  const rows = [
    ['another address', mkEndpoint('a', ['10.0.0.7'], ['k8s:app=a'])],
    [
      'another hook',
      {
        ...mkEndpoint('a', ['10.0.0.1'], ['k8s:app=a']),
        hook: { kind: 'cgroup' as const, path: 'a.slice' },
      },
    ],
  ] as const
  for (const [reason, record] of rows) {
    const node = mkNode()
    const { id } = node.endpoint('a')
    node.learn(id, 'n.x', ['192.0.2.1'])
    node.setEndpoints([record, mkEndpoint('b', ['10.0.0.2'])])
    const now = node.endpoint('a')
    assert.ok(now.id > id && now.generation > node.endpoint('b').generation, reason)
    assert.equal(node.core.names.entries.slots.used, 0, reason)
    assert.equal(node.verdict('a', '192.0.2.1'), 'deny', reason)
    assert.ok(![...node.recorder.policies.values()].some(({ endpoint }) => endpoint === id), reason)
    assert.equal(node.recorder.endpoints.has(id), false, reason)
    assert.deepEqual(node.differences(), [])
  }
})

test('EndpointControl lets two endpoints swap places', () => {
  const node = mkNode()
  node.setEndpoints([mkEndpoint('b', ['10.0.0.1']), mkEndpoint('a', ['10.0.0.2'], ['k8s:app=a'])])
  assert.deepEqual(node.labelsOf('10.0.0.2'), ['k8s:app=a'])
  const at = (text: string) => node.endpoints.registry.byAddress(4, prefixOf(text).octets, 0)?.name
  assert.deepEqual([at('10.0.0.1'), at('10.0.0.2')], ['b', 'a'])
  assert.deepEqual(node.differences(), [])
})

test('EndpointControl removes everything about a removed endpoint', () => {
  const node = mkNode()
  const { id } = node.endpoint('a')
  node.learn(id, 'n.x', ['192.0.2.1'])
  node.learn(node.endpoint('b').id, 'n.x', ['192.0.2.1'])
  node.setEndpoints([mkEndpoint('b', ['10.0.0.2'])])
  assert.equal(node.policies.compiledOf(id), undefined)
  assert.equal(node.policies.dnsVerdicts.judge(id, UDP, Uint8Array.of(0), 0), NAME_DENIED)
  assert.equal(node.core.names.entries.slots.used, 1, "the other endpoint's entry stays")
  assert.ok(node.labelsOf('192.0.2.1').includes('fqdn:*.x'), 'and so does the fact')
  node.setEndpoints([])
  assert.deepEqual(
    [node.recorder.endpoints.size, node.recorder.policies.size, node.recorder.prefixes.size],
    [0, 0, 0],
  )
})

test('An endpoint that is added during a change of policies has its rules at once', () => {
  const node = mkNode()
  node.policies.setPolicies(mkPolicies('egress: [ {} ]'), node.endpoints.registry)
  node.endpoints.apply([
    mkEndpoint('a', ['10.0.0.1'], ['k8s:app=a']),
    mkEndpoint('c', ['10.0.0.3']),
  ])
  node.core.committer.commit()
  assert.equal(node.verdict('c', '192.0.2.1'), 'deny')
  node.settle()
  assert.equal(node.verdict('a', '192.0.2.1'), 'deny')
  assert.deepEqual(node.differences(), [])
})

test('EndpointControl removes the entries of a removed endpoint in slices, whatever others learned', () => {
  const node = new Node({ pairs: 16_384 })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  const addresses = Array.from({ length: 6_000 }, (_, i) => addressNumber(4, i))
  node.learn(node.endpoint('a').id, 'n.x', addresses)
  node.learn(node.endpoint('b').id, 'n.x', addresses)
  const { entries } = node.core.names
  node.endpoints.apply([mkEndpoint('b', ['10.0.0.2'])])
  const left = entries.slots.used
  assert.ok(left > 6_000, `not all in one turn: ${left} left`)
  assert.ok(left < 12_000, 'the first slice is removed at once')
  node.settle()
  assert.equal(entries.slots.used, 6_000, "the other endpoint's entries stay")
  for (let entry = 1; entry <= entries.slots.high; entry++) {
    if (entries.mapping[entry] !== 0) assert.equal(entries.endpoint[entry], node.endpoint('b').id)
  }
})

test('EndpointControl.followHook replaces an endpoint when the datapath reports that its hook was made again', () => {
  const node = new Node()
  node.setEndpoints([
    { ...mkEndpoint('a', ['10.0.0.1']), hook: { kind: 'cgroup' as const, path: 'a.slice' } },
  ])
  const { id } = node.endpoint('a')
  assert.equal(
    node.endpoints.followHook(node.endpoint('a')),
    false,
    'the same key: nothing changed',
  )
  node.recorder.hook = { kind: 'waiting', reason: 'cgroup:7 was made again', remade: true }
  assert.equal(
    node.endpoints.followHook(node.endpoint('a')),
    true,
    'the hook was made again without notice',
  )
  assert.notEqual(node.endpoint('a').id, id)
})
