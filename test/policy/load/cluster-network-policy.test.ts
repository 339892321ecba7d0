// How the loader reads ClusterNetworkPolicies, and what it refuses, as their API defines them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../../src/core/errors.ts'
import { formatPrefix } from '../../../src/core/ip.ts'
import { formatPortRange } from '../../../src/core/protocol.ts'
import { loadPolicies, type LoadOptions } from '../../../src/policy/load/load.ts'
import { formatSelector } from '../../../src/policy/match/labels.ts'
import type { PeerSelector, PortRule } from '../../../src/policy/rule.ts'

const HEADER =
  'apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: { name: p }\n'
const WITH_CIDR: LoadOptions = { cidrMatchesEndpoints: true }

function load(spec: string, options: LoadOptions = WITH_CIDR) {
  return loadPolicies(`${HEADER}spec: { ${spec} }\n`, 'f', options)
}

function withRule(rule: string): string {
  return `tier: Admin, priority: 5, subject: { namespaces: {} }, egress: [${rule}]`
}

function showPeer(peer: PeerSelector): string {
  if (peer.kind === 'entity') return peer.entity
  if (peer.kind === 'fqdn') return peer.pattern.text
  return peer.kind === 'endpoints'
    ? `{${formatSelector(peer.selector)}}`
    : formatPrefix(peer.prefix)
}

function showPorts({ ports, named = [] }: PortRule): string {
  return [...ports.map(formatPortRange), ...named.map(({ name }) => name)].join(' ')
}

const PEER = '{ namespaces: {} }'
const NS = 'k8s:io.kubernetes.pod.namespace'
const RULES: readonly (readonly [why: string, rule: string, shown: string])[] = [
  ['every pod', '{ action: Deny, to: [{ namespaces: {} }] }', `deny {${NS}} *`],
  [
    'a namespace by its name',
    '{ action: Pass, to: [{ namespaces: { matchLabels: { kubernetes.io/metadata.name: ops } } }] }',
    `pass {${NS}=ops} *`,
  ],
  [
    'pods of namespaces',
    '{ action: Accept, to: [{ pods: { namespaceSelector: { matchLabels: { team: x } }, podSelector: { matchLabels: { app: db } } } }] }',
    `allow {app=db,k8s:io.cilium.k8s.namespace.labels.team=x,${NS}} *`,
  ],
  [
    'networks, with host bits masked',
    '{ action: Deny, to: [{ networks: [10.1.2.3/8, "fd00::/8"] }] }',
    'deny 10.0.0.0/8 fd00::/8 *',
  ],
  [
    'names; a star is one or more labels',
    '{ action: Accept, to: [{ domainNames: [Example.com., "*.kubernetes.io"] }] }',
    'allow example.com **.kubernetes.io *',
  ],
  [
    'several peers',
    '{ action: Accept, to: [{ domainNames: [a.example] }, { networks: [192.0.2.0/24] }] }',
    'allow a.example 192.0.2.0/24 *',
  ],
  [
    'ports by number, range and name',
    '{ action: Accept, to: [{ namespaces: {} }], protocols: [{ tcp: { destinationPort: { number: 443 } } }, { udp: { destinationPort: { range: { start: 1, end: 9 } } } }, { sctp: { destinationPort: { number: 7 } } }, { destinationNamedPort: Web }] }',
    `allow {${NS}} 443/TCP 1-9/UDP 7/SCTP web`,
  ],
]

for (const [why, rule, shown] of RULES) {
  test(`loadPolicies reads in a ClusterNetworkPolicy: ${why}`, () => {
    const { policies, faults } = load(withRule(rule))
    assert.deepEqual(faults.map(formatFault), [])
    const [policy] = policies
    assert.deepEqual(policy?.tier, { name: 'Admin', priority: 5 })
    assert.equal(policy.defaultDeny, false, 'the kind has no default deny')
    const [first] = policy.rules
    assert.ok(first?.peers.kind === 'selectors')
    const ports = first.toPorts?.map(showPorts).join('; ') ?? '*'
    const parts = [first.action, ...first.peers.selectors.map(showPeer), ports]
    assert.equal(parts.join(' '), shown)
  })
}

const SUBJECTS: readonly (readonly [subject: string, shown: string])[] = [
  ['{ namespaces: {} }', '*'],
  ['{ namespaces: { matchLabels: { kubernetes.io/metadata.name: ops } } }', `${NS}=ops`],
  ['{ pods: { namespaceSelector: {}, podSelector: { matchLabels: { app: a } } } }', 'app=a'],
]

test('loadPolicies reads the subject, the tier and the name of a rule', () => {
  for (const [subject, shown] of SUBJECTS) {
    const rule = '{ name: some rule, action: Deny, to: [{ namespaces: {} }] }'
    const { policies } = load(`tier: Baseline, priority: 0, subject: ${subject}, egress: [${rule}]`)
    assert.equal(formatSelector(policies[0]!.selector), shown)
    assert.deepEqual(policies[0]?.tier, { name: 'Baseline', priority: 0 })
    assert.equal(policies[0].rules[0]?.name, 'some rule')
  }
})

test('loadPolicies refuses networks unless prefixes select endpoints too', () => {
  const spec = withRule('{ action: Deny, to: [{ networks: [10.0.0.0/8] }] }')
  const { policies, faults } = load(spec, {})
  assert.deepEqual(policies, [])
  assert.match(faults[0]?.message ?? '', /expected policies.cidr-matches-endpoints: true/)
})

test('loadPolicies leaves out Accept rules with unsupported fields if these are warnings, and no other rules', () => {
  const options: LoadOptions = { unsupportedFields: 'warn' }
  const accept = load(withRule(`{ action: Accept, to: [{ nodes: {} }, ${PEER}] }`), options)
  assert.deepEqual(accept.policies[0]?.rules, [], 'the whole rule matches nothing')
  assert.equal(accept.warnings.length, 1)
  for (const action of ['Deny', 'Pass']) {
    const { policies, faults } = load(
      withRule(`{ action: ${action}, to: [{ nodes: {} }] }`),
      options,
    )
    assert.deepEqual([policies.length, faults.length], [0, 1], action)
  }
})

test('loadPolicies reads the egress half of a ClusterNetworkPolicy if ingress is ignored', () => {
  const { policies } = load(`${withRule(`{ action: Deny, to: [${PEER}] }`)}, ingress: []`, {
    ingress: 'ignore',
  })
  assert.deepEqual([policies[0]?.halfEnforced, policies[0]?.rules.length], [true, 1])
})

test('loadPolicies refuses fields of other kinds in a ClusterNetworkPolicy', () => {
  const spec = 'spec: { tier: Admin, priority: 1, subject: { namespaces: {} } }\n'
  const rows: readonly (readonly [from: string, to: string, fault: RegExp])[] = [
    ['name: p', 'name: p, namespace: x', /found a namespace, expected none/],
    [
      'name: p',
      'name: p, annotations: { namegate.io/audit: "true" }',
      /audit its endpoints with audit.endpoints/,
    ],
    ['v1alpha2', 'v1alpha1', /expected policy.networking.k8s.io\/v1alpha2/],
    ['spec', 'specs', /found specs, expected spec/],
    [
      'kind: ClusterNetworkPolicy',
      'kind: AdminNetworkPolicy',
      /write a ClusterNetworkPolicy of v1alpha2/,
    ],
  ]
  assert.deepEqual(loadPolicies(HEADER + spec, 'f').faults, [])
  for (const [from, to, fault] of rows) {
    const { faults } = loadPolicies((HEADER + spec).replace(from, to), 'f')
    assert.match(faults.map(({ message }) => message).join('\n'), fault)
  }
})
