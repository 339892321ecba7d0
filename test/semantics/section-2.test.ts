// docs/spec/semantics 2, policy: every implemented bullet, by the datapath's verdicts about packets and the proxy's about questions.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkPolicies } from '../support/nodes/node.ts'
import {
  checkPackets as check,
  classes,
  mkPolicyNode as mkNode,
  type Packets,
} from '../support/nodes/policy-node.ts'

test('Default deny: on with egress or egressDeny, unless enableDefaultDeny.egress is false, or when it is true', () => {
  const rows: readonly (readonly [
    spec: string,
    host: 'allow' | 'deny',
    other: 'allow' | 'deny',
  ])[] = [
    ['egress: [ { toEntities: [ host ] } ]', 'allow', 'deny'],
    ['egressDeny: [ { toEntities: [ host ] } ]', 'deny', 'deny'],
    [
      'egress: [ { toEntities: [ host ] } ]\nenableDefaultDeny: { egress: false }',
      'allow',
      'allow',
    ],
    [
      'egressDeny: [ { toEntities: [ host ] } ]\nenableDefaultDeny: { egress: false }',
      'deny',
      'allow',
    ],
    ['enableDefaultDeny: { egress: true }', 'deny', 'deny'],
    ['egress: [ {} ]', 'deny', 'deny'],
  ]
  for (const [spec, host, other] of rows)
    check(mkNode([spec]), [
      ['192.0.2.9', host],
      ['203.0.113.1', other],
    ])
})

test('An endpoint for which no policy turns default deny on follows default-egress allow, audit or deny; deny rules hold', () => {
  const soft =
    'egressDeny: [ { toCIDR: [ 203.0.113.0/24 ] } ]\nenableDefaultDeny: { egress: false }'
  for (const defaultEgress of ['allow', 'audit', 'deny'] as const) {
    check(mkNode([], { defaultEgress }), [
      ['203.0.114.1', defaultEgress],
      ['10.200.0.2', defaultEgress],
    ])
    check(mkNode([soft], { defaultEgress }), [
      ['203.0.113.1', 'deny'],
      ['203.0.114.1', defaultEgress],
    ])
  }
  check(
    mkNode(['egress: [ { toEntities: [ world ] } ]\nenableDefaultDeny: { egress: false }'], {
      defaultEgress: 'audit',
    }),
    [
      ['203.0.114.1', 'allow'],
      ['10.200.0.2', 'audit'],
    ],
  )
})

test('Deny beats allow, across rules, policies, selectors and classes', () => {
  const allow = 'egress: [ { toFQDNs: [ { matchName: a.x } ] }, { toCIDR: [ 203.0.113.1/32 ] } ]'
  const denies = [
    'egressDeny: [ { toCIDR: [ 203.0.113.0/24 ] } ]',
    'egressDeny: [ { toEntities: [ world ] } ]',
    'egressDeny: [ { toEntities: [ all ] } ]',
    'egressDeny: [ { toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] } ]',
  ]
  for (const deny of denies) {
    for (const order of [
      [allow, deny],
      [deny, allow],
    ]) {
      const node = mkNode(order)
      node.learn(node.endpoint('a').id, 'a.x', ['203.0.113.1'])
      check(node, [['203.0.113.1', 'deny']])
    }
  }
})

test('Rules are a union and order never matters; equal entries collapse into one that remembers every rule', () => {
  const specs = [
    'egress: [ { toCIDR: [ 203.0.113.0/24 ] } ]',
    'egress: [ { toCIDR: [ 203.0.113.0/24 ] }, { toEntities: [ host ] } ]',
    'egressDeny: [ { toPorts: [ { ports: [ { port: "25", protocol: TCP } ] } ] } ]',
  ]
  const packets: Packets = [
    ['203.0.113.1', 'allow'],
    ['192.0.2.9', 'allow'],
    ['203.0.113.1', 'deny', '25'],
    ['203.0.114.1', 'deny'],
  ]
  const policies = mkPolicies(...specs)
  const sizes = [policies, [...policies].reverse()].map((order) => {
    const node = mkNode([])
    node.setPolicies(order)
    check(node, packets)
    return node.core.policyMaps.sizeOf(node.endpoint('a').id)
  })
  assert.equal(sizes[0], sizes[1])
  const node = mkNode(specs)
  const id = node.identityOf('203.0.113.0/24')
  const [entry, ...more] = [...node.recorder.policies.values()].filter(
    (each) => each.identity === id && each.endpoint === node.endpoint('a').id,
  )
  assert.equal(more.length, 0)
  assert.deepEqual(
    node.core.origins.places(entry?.rule ?? 0).map(({ policy }) => policy),
    ['policy-0', 'policy-1'],
  )
})

test('A present and empty peer field selects nothing; toPorts without peers means any peer; {} makes default deny', () => {
  check(mkNode(['egress: [ { toCIDR: [] }, { toFQDNs: [] }, { toEntities: [] } ]']), classes())
  check(
    mkNode(['egress: [ { toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] } ]']),
    classes(0, 1, 2, 3, 4, 5),
  )
  check(mkNode(['egress: [ {} ]']), classes())
})

test('DNS: rules.dns decides which names an endpoint can ask; an endpoint without it can ask any name', () => {
  const node = mkNode([
    'endpointSelector: { matchLabels: { app: a } }\negress: [ { toPorts: [ { ports: [ { port: "53", protocol: ANY } ], rules: { dns: [ { matchPattern: "*.x" } ] } } ] } ]',
  ])
  assert.deepEqual(
    ['a.x', 'a.b.x', 'y'].map((name) => node.mayAsk('a', name)),
    [true, false, false],
  )
  assert.equal(node.mayAsk('b', 'y'), true)
  node.setPolicies([])
  assert.equal(node.mayAsk('a', 'y'), true)
})

test('Answers are observed before a selector matches them: a selector added later applies to known names', () => {
  const node = mkNode([])
  node.learn(node.endpoint('a').id, 'a.x', ['203.0.113.1', '2001:db8::1'])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchName: a.x } ] } ]'))
  check(node, [
    ['203.0.113.1', 'allow'],
    ['2001:db8::1', 'allow'],
    ['203.0.113.2', 'deny'],
  ])
})

test('The datapath gets endpoint audit with the endpoint, and switches it at run time', () => {
  const node = mkNode(['egress: [ {} ]'])
  const isAudited = () => node.recorder.endpoints.get(node.endpoint('a').id)?.audit
  assert.equal(isAudited(), false)
  node.endpoints.setAudit(node.endpoint('a'), true)
  node.core.committer.commit()
  assert.equal(isAudited(), true)
})

test('A changed policy is in force when the transition reports it: the realized revision follows the desired one', () => {
  const node = mkNode(['egress: [ {} ]'])
  node.policies.setPolicies(
    mkPolicies('egress: [ { toEntities: [ world ] } ]'),
    node.endpoints.registry,
  )
  node.transition.begin()
  assert.deepEqual([node.policies.revision, node.transition.realizedRevision], [2, 1])
  check(node, [['203.0.113.1', 'deny']])
  node.transition.finish()
  assert.equal(node.transition.realizedRevision, 2)
  check(node, [['203.0.113.1', 'allow']])
})

test('A new answer always has the labels of the new selectors, and its name can be asked when its rules are in force', () => {
  const node = mkNode(['egress: [ {} ]'])
  node.policies.setPolicies(
    mkPolicies('egress: [ { toFQDNs: [ { matchName: a.x } ] } ]'),
    node.endpoints.registry,
  )
  node.transition.begin()
  const [row = 0] = node.learn(node.endpoint('a').id, 'a.x', ['203.0.113.1'])
  assert.ok(node.labelsOf('203.0.113.1').includes('fqdn:a.x'))
  assert.equal(node.core.committer.isApplied(row), true)
  node.transition.finish()
  check(node, [['203.0.113.1', 'allow']])
})
