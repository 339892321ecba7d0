// docs/spec/semantics 2: every row of the table of fields, by the datapath's verdicts about packets.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  checkPackets as check,
  classes,
  mkPolicyNode as mkNode,
  type Packets,
} from '../support/nodes/policy-node.ts'

const FIELDS: readonly (readonly [row: string, spec: string, packets: Packets])[] = [
  [
    'toCIDR',
    'egress: [ { toCIDR: [ 203.0.113.0/24, "2001:db8:5::/48" ] } ]',
    [
      ['203.0.113.1', 'allow'],
      ['203.0.114.1', 'deny'],
      ['2001:db8:5::1', 'allow'],
      ['2001:db8:6::1', 'deny'],
    ],
  ],
  [
    'toCIDRSet with except',
    'egress: [ { toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.96.0.0/12 ] }, { cidr: "fc00::/7", except: [ "fd00::/16" ] } ] } ]',
    [
      ['10.1.1.1', 'allow'],
      ['10.96.1.1', 'deny'],
      ['10.111.255.255', 'deny'],
      ['10.112.0.1', 'allow'],
      ['fc00::1', 'allow'],
      ['fd00::1', 'deny'],
      ['10.200.0.2', 'deny'],
    ],
  ],
  ['toEntities host', 'egress: [ { toEntities: [ host ] } ]', classes(0, 4)],
  ['toEntities cluster', 'egress: [ { toEntities: [ cluster ] } ]', classes(0, 1, 4, 5)],
  ['toEntities world', 'egress: [ { toEntities: [ world ] } ]', classes(2, 3)],
  ['toEntities world-ipv4', 'egress: [ { toEntities: [ world-ipv4 ] } ]', classes(2)],
  ['toEntities world-ipv6', 'egress: [ { toEntities: [ world-ipv6 ] } ]', classes(3)],
  ['toEntities all', 'egress: [ { toEntities: [ all ] } ]', classes(0, 1, 2, 3, 4, 5)],
  ['toEntities none', 'egress: [ { toEntities: [ none ] } ]', classes()],
  [
    'toPorts number, endPort, protocols',
    `
egress:
- toCIDR: [ 203.0.113.0/24 ]
  toPorts: [ { ports: [ { port: "443", protocol: TCP }, { port: "8000", endPort: 8099, protocol: UDP }, { port: "9", protocol: SCTP }, { port: "7" } ] } ]
`,
    [
      ['203.0.113.1', 'allow', '443/6'],
      ['203.0.113.1', 'deny', '443/17'],
      ['203.0.113.1', 'allow', '8000/17'],
      ['203.0.113.1', 'allow', '8099/17'],
      ['203.0.113.1', 'deny', '8100/17'],
      ['203.0.113.1', 'deny', '8000/6'],
      ['203.0.113.1', 'allow', '9/132'],
      ['203.0.113.1', 'allow', '7/6'],
      ['203.0.113.1', 'allow', '7/132'],
      ['203.0.113.1', 'deny', '0/1'],
    ],
  ],
  [
    'rules.dns opens nothing',
    'egress: [ { toPorts: [ { ports: [ { port: "53", protocol: ANY } ], rules: { dns: [ { matchPattern: "*" } ] } } ] } ]',
    [
      ['203.0.113.1', 'deny', '53/17'],
      ['203.0.113.1', 'deny', '53/6'],
    ],
  ],
  [
    'rules.dns beside a rule without that covers the port',
    'egress: [ { toPorts: [ { ports: [ { port: "53", protocol: UDP } ], rules: { dns: [ { matchPattern: "*" } ] } } ] }, { toEntities: [ world ], toPorts: [ { ports: [ { port: "53", protocol: UDP } ] } ] } ]',
    [
      ['203.0.113.1', 'allow', '53/17'],
      ['10.200.0.2', 'deny', '53/17'],
    ],
  ],
  [
    'egressDeny',
    'egress: [ { toEntities: [ all ] } ]\negressDeny: [ { toCIDR: [ 203.0.113.0/24 ] }, { toEntities: [ host ] }, { toPorts: [ { ports: [ { port: "25", protocol: TCP } ] } ] } ]',
    [
      ['203.0.113.1', 'deny'],
      ['203.0.114.1', 'allow'],
      ['192.0.2.9', 'deny'],
      ['203.0.114.1', 'deny', '25/6'],
      ['203.0.114.1', 'allow', '25/17'],
    ],
  ],
]

for (const [row, spec, packets] of FIELDS) {
  test(`Table: ${row}`, () => check(mkNode([spec]), packets))
}

test('Table: egress[].toFQDNs, matchName and matchPattern, IPv4 and IPv6', () => {
  const node = mkNode(['egress: [ { toFQDNs: [ { matchName: a.x }, { matchPattern: "*.y" } ] } ]'])
  const id = node.endpoint('a').id
  node.learn(id, 'a.x', ['203.0.113.1', '2001:db8::1'])
  node.learn(id, 'b.y', ['203.0.113.2'])
  node.learn(id, 'b.x', ['203.0.113.3'])
  check(node, [
    ['203.0.113.1', 'allow'],
    ['2001:db8::1', 'allow'],
    ['203.0.113.2', 'allow'],
    ['203.0.113.3', 'deny'],
  ])
})

test('Table: endpointSelector matchLabels; a namespaced policy selects inside its namespace', () => {
  const mk = (kind: string, metadata: string, labels: string) =>
    `apiVersion: cilium.io/v2\nkind: ${kind}\nmetadata: ${metadata}\nspec: { endpointSelector: { matchLabels: { ${labels} } }, egress: [ {} ] }\n`
  const rows: readonly (readonly [policy: string, a: boolean, b: boolean, reason: string])[] = [
    [
      mk('CiliumClusterwideNetworkPolicy', '{ name: p }', ''),
      true,
      true,
      'an empty selector selects all',
    ],
    [
      mk('CiliumClusterwideNetworkPolicy', '{ name: p }', 'app: a'),
      true,
      false,
      'a key without source',
    ],
    [
      mk('CiliumClusterwideNetworkPolicy', '{ name: p }', '"k8s:app": b'),
      false,
      true,
      'a key with its source',
    ],
    [
      mk('CiliumClusterwideNetworkPolicy', '{ name: p }', '"other:app": b'),
      false,
      false,
      'another source',
    ],
    [
      mk('CiliumNetworkPolicy', '{ name: p, namespace: prod }', ''),
      false,
      true,
      'the namespace prod',
    ],
    [mk('CiliumNetworkPolicy', '{ name: p }', ''), true, false, 'no namespace is default'],
    [
      mk('CiliumNetworkPolicy', '{ name: p, namespace: prod }', 'app: a'),
      false,
      false,
      'labels in another namespace',
    ],
  ]
  for (const [policy, a, b, reason] of rows) {
    const node = mkNode([policy])
    assert.equal(node.verdict('a', '203.0.113.1') === 'deny', a, `a: ${reason}`)
    assert.equal(node.verdict('b', '203.0.113.1') === 'deny', b, `b: ${reason}`)
  }
})
