// The order in which `nearestAllow` ranks rules that lack different parts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Question } from '../../src/explain/explanation.ts'
import { connect, explainOn } from '../support/nodes/explain.ts'
import { prefixOf } from '../support/nodes/node.ts'
import { mkPolicyNode } from '../support/nodes/policy-node.ts'

/** One rule a line. The first rule is on line 7. */
const policy = (...rules: readonly string[]): string => `egress:\n${rules.join('\n')}`
const fqdn = (name: string, port: string): string =>
  `- { toFQDNs: [ { matchPattern: "${name}" } ], toPorts: [ { ports: [ { port: "${port}", protocol: TCP } ] } ] }`
const cidr = (prefix: string, port: string): string =>
  `- { toCIDR: [ ${prefix} ], toPorts: [ { ports: [ { port: "${port}", protocol: TCP } ] } ] }`
const world = (port: string): string =>
  `- { toEntities: [ world ], toPorts: [ { ports: [ { port: "${port}", protocol: TCP } ] } ] }`

const NAME = connect({ name: 'api.shop.test' }, '80')
const APEX = connect({ name: 'shop.test' }, '80')
const ADDRESS = connect({ address: '203.0.113.9' }, '80')

const ROWS: readonly (readonly [
  rules: readonly string[],
  question: Question,
  nearest: number,
  missing: RegExp,
  why: string,
])[] = [
  [
    [fqdn('apj.shop.test', '80'), fqdn('api.shop.test', '443')],
    NAME,
    8,
    /^its ports are 443\/TCP, not 80\/TCP$/,
    'the same name with another port, before a name with one letter changed',
  ],
  [
    [fqdn('www.shop.test', '80'), fqdn('*.shop.test', '443')],
    NAME,
    8,
    /^its ports are 443\/TCP/,
    'a pattern that matches, with another port, before another name of its parent',
  ],
  [
    [fqdn('apj.shop.test', '443'), fqdn('apj.shop.test', '80')],
    NAME,
    8,
    /^apj\.shop\.test does not match api\.shop\.test$/,
    'a similar name with the same port, before one with another port',
  ],
  [
    [world('443'), fqdn('apj.shop.test', '80')],
    NAME,
    8,
    /^apj\.shop\.test does not match/,
    'a similar name with the same port, before an entity with another port',
  ],
  [
    [fqdn('*', '443'), fqdn('apj.shop.test', '80')],
    NAME,
    8,
    /^apj\.shop\.test does not match/,
    'a similar name with the same port, before every name with another port',
  ],
  [
    [cidr('203.0.113.8/32', '80'), cidr('203.0.113.0/24', '443')],
    ADDRESS,
    8,
    /^its ports are 443\/TCP/,
    'a prefix of the address with another port, before a neighbour with the same port',
  ],
  [
    [cidr('0.0.0.0/0', '443'), cidr('203.0.113.8/32', '80')],
    ADDRESS,
    8,
    /^203\.0\.113\.9 is not in 203\.0\.113\.8\/32$/,
    'a neighbour with the same port, before every address with another port',
  ],
  [
    [fqdn('*.shop.test', '80')],
    ADDRESS,
    7,
    /^no known answer for a name that \*\.shop\.test matches had the address 203\.0\.113\.9$/,
    'an address that no answer had, and a pattern',
  ],
  [
    [fqdn('*', '80')],
    ADDRESS,
    7,
    /^no known answer had the address 203\.0\.113\.9$/,
    'an address that no answer had, and every name',
  ],
  [
    [fqdn('shoq.test', '80'), fqdn('*.shop.test', '80')],
    APEX,
    8,
    /^\*\.shop\.test matches names below shop\.test, not shop\.test itself$/,
    'a pattern for names below the name, before a similar name',
  ],
  [
    [fqdn('shoq.test', '80'), fqdn('**.shop.test', '80')],
    APEX,
    8,
    /^\*\*\.shop\.test matches names below shop\.test, not shop\.test itself$/,
    'the same with two stars',
  ],
  [
    [fqdn('*.shop.test', '80'), fqdn('shop.test', '443')],
    APEX,
    8,
    /^its ports are 443\/TCP/,
    'the same name with another port, before a pattern for names below it',
  ],
]

test('nearestAllow ranks a rule for the same target with another port before a rule for a similar target', () => {
  for (const [rules, question, nearest, missing, why] of ROWS) {
    const found = explainOn(mkPolicyNode([policy(...rules)]), question)
    assert.equal(found.verdict, 'deny', why)
    assert.equal(found.nearest?.line, nearest, why)
    assert.match(found.nearest.missing, missing, why)
  }
})

test('explain says what allows an address of this host, and a protocol without ports', () => {
  const node = mkPolicyNode([
    'egress: [ { toFQDNs: [ { matchName: cilium.io } ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] } ]',
  ])
  const cgroup = { hook: { kind: 'cgroup', path: 'a' } } as const
  const host = explainOn(node, connect({ address: '127.0.0.1' }), 'a', cgroup)
  assert.equal(host.verdict, 'deny')
  assert.deepEqual(host.notes, [
    '127.0.0.1 is an address of this host: a rule with toEntities: [host] allows it',
  ])
  const ping = explainOn(node, connect({ name: 'cilium.io' }, '0/1'))
  assert.match(ping.reason, /^ICMP is denied/)
  assert.match(ping.nearest?.missing ?? '', /its ports are 443\/TCP, not ICMP$/)
  assert.equal(ping.notes.at(-1), 'ICMP has no ports: a rule without toPorts allows it')
})

test('explain says that loopback stays inside the network namespace of an interface endpoint', () => {
  const node = mkPolicyNode(['egress: [ { toCIDR: [ 192.0.2.0/28 ] } ]'])
  for (const address of ['127.0.0.1', '127.9.9.9', '::1']) {
    for (const side of ['ingress', 'egress'] as const) {
      const asker = { hook: { kind: 'interface', name: 'eth0', side } } as const
      const found = explainOn(node, connect({ address }, '80'), 'a', asker)
      assert.equal(found.verdict, 'allow')
      assert.match(found.reason, /^80\/TCP is not judged: \S+ is loopback, .* network namespace$/)
      assert.equal(found.nearest, null)
      assert.deepEqual(found.notes, [])
    }
  }
})

test('explain says that packets to an own address of an interface endpoint stay inside', () => {
  const node = mkPolicyNode(['egress: [ { toCIDR: [ 192.0.2.0/28 ] } ]'])
  const addresses = ['10.9.0.2/32', '10.8.0.0/24', 'fd00::2/128'].map(prefixOf)
  for (const { address, kind, verdict } of [
    { address: '10.9.0.2', kind: 'interface', verdict: 'allow' },
    { address: 'fd00::2', kind: 'interface', verdict: 'allow' },
    // Another workload of the prefix can have it.
    { address: '10.8.0.2', kind: 'interface', verdict: 'deny' },
    { address: '10.9.0.3', kind: 'interface', verdict: 'deny' },
    // The processes of a cgroup share the addresses of the host.
    { address: '10.9.0.2', kind: 'cgroup', verdict: 'deny' },
  ] as const) {
    const hook =
      kind === 'cgroup'
        ? ({ kind, path: 'a' } as const)
        : ({ kind, name: 'eth0', side: 'ingress' } as const)
    const found = explainOn(node, connect({ address }, '80'), 'a', { hook, addresses })
    assert.equal(found.verdict, verdict, `${address} ${kind}`)
    if (verdict === 'deny') continue
    assert.match(found.reason, /^80\/TCP is not judged: \S+ is the workload's own address, /)
  }
})
