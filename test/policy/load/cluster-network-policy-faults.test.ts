// Every fault of a ClusterNetworkPolicy, with its path.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadPolicies } from '../../../src/policy/load/load.ts'

const HEADER =
  'apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: { name: p }\n'

function withRule(rule: string): string {
  return `tier: Admin, priority: 5, subject: { namespaces: {} }, egress: [${rule}]`
}

const many = (item: string): string => Array<string>(26).fill(item).join(', ')
const PEER = '{ namespaces: {} }'
const FAULTS: readonly (readonly [why: string, spec: string, fault: string])[] = [
  [
    'no tier',
    'priority: 1, subject: { namespaces: {} }',
    'spec: found no tier, expected Admin or Baseline',
  ],
  [
    'another tier',
    'tier: admin, priority: 1, subject: { namespaces: {} }',
    'spec.tier: found "admin", expected Admin or Baseline',
  ],
  [
    'no priority',
    'tier: Admin, subject: { namespaces: {} }',
    'spec: found no priority, expected a whole number from 0 to 1000',
  ],
  [
    'a priority beyond',
    'tier: Admin, priority: 1001, subject: { namespaces: {} }',
    'spec.priority: found 1001, expected a whole number from 0 to 1000',
  ],
  [
    'no subject',
    'tier: Admin, priority: 1',
    'spec: found no subject, expected one; `namespaces: {}` selects every pod',
  ],
  [
    'an empty subject',
    'tier: Admin, priority: 1, subject: {}',
    'spec.subject: found no field, expected namespaces or pods',
  ],
  [
    'two subjects',
    'tier: Admin, priority: 1, subject: { namespaces: {}, pods: {} }',
    'spec.subject.pods: can not stand beside namespaces, expected one field',
  ],
  [
    'pods without namespaces',
    'tier: Admin, priority: 1, subject: { pods: { podSelector: {} } }',
    'spec.subject.pods: found no namespaceSelector, expected one; `{}` selects every namespace',
  ],
  [
    'ingress',
    'tier: Admin, priority: 1, subject: { namespaces: {} }, ingress: []',
    'spec.ingress: is not supported: namegate decides egress only',
  ],
  [
    'too many rules',
    `tier: Admin, priority: 1, subject: { namespaces: {} }, egress: [${many(`{ action: Deny, to: [${PEER}] }`)}]`,
    'spec.egress: found 26 items, expected 0 to 25',
  ],
  [
    'no action',
    withRule(`{ to: [${PEER}] }`),
    'spec.egress[0]: found no action, expected Accept, Deny or Pass',
  ],
  [
    'an action of v1alpha1',
    withRule(`{ action: Allow, to: [${PEER}] }`),
    'spec.egress[0].action: found "Allow", expected Accept, Deny or Pass',
  ],
  [
    'no peers',
    withRule('{ action: Deny }'),
    'spec.egress[0]: found no to, expected one peer at least',
  ],
  [
    'an empty list of peers',
    withRule('{ action: Deny, to: [] }'),
    'spec.egress[0].to: found 0 items, expected 1 to 25',
  ],
  [
    'too many peers',
    withRule(`{ action: Deny, to: [${many(PEER)}] }`),
    'spec.egress[0].to: found 26 items, expected 1 to 25',
  ],
  [
    'a peer without a field',
    withRule('{ action: Deny, to: [{}] }'),
    'spec.egress[0].to[0]: found no field, expected namespaces, pods, networks or domainNames',
  ],
  [
    'an unknown peer',
    withRule('{ action: Deny, to: [{ services: {} }] }'),
    'unknown field spec.egress[0].to[0].services',
  ],
  [
    'names in a Deny rule',
    withRule('{ action: Deny, to: [{ domainNames: [a.example] }] }'),
    'spec.egress[0].to[0].domainNames: is supported in Accept rules only: names can only allow',
  ],
  [
    'names in a Pass rule',
    withRule('{ action: Pass, to: [{ domainNames: [a.example] }] }'),
    'spec.egress[0].to[0].domainNames: is supported in Accept rules only: names can only allow',
  ],
  [
    'a star inside a name',
    withRule('{ action: Accept, to: [{ domainNames: ["a.*.example"] }] }'),
    'spec.egress[0].to[0].domainNames[0]: found "a.*.example", expected a name such as www.example.com or *.example.com',
  ],
  [
    'a star alone',
    withRule('{ action: Accept, to: [{ domainNames: ["*"] }] }'),
    'spec.egress[0].to[0].domainNames[0]: found "*", expected a name such as www.example.com or *.example.com',
  ],
  [
    'one label',
    withRule('{ action: Accept, to: [{ domainNames: [localhost] }] }'),
    'spec.egress[0].to[0].domainNames[0]: found "localhost", expected a name such as www.example.com or *.example.com',
  ],
  [
    'nodes',
    withRule('{ action: Deny, to: [{ nodes: {} }] }'),
    'spec.egress[0].to[0].nodes: is not supported: labels of nodes are not known; write their addresses as networks',
  ],
  [
    'no value',
    withRule(`{ action: Accept, to: [${PEER}], protocols: }`),
    'spec.egress[0].protocols: found nothing, expected a value',
  ],
  [
    'ports of v1alpha1',
    withRule(`{ action: Deny, to: [${PEER}], ports: [] }`),
    'spec.egress[0].ports: is a field of v1alpha1: write protocols',
  ],
  [
    'two protocols in one',
    withRule(`{ action: Deny, to: [${PEER}], protocols: [{ tcp: {}, udp: {} }] }`),
    'spec.egress[0].protocols[0].udp: can not stand beside tcp, expected one field',
  ],
  [
    'a protocol without a port',
    withRule(`{ action: Deny, to: [${PEER}], protocols: [{ tcp: {} }] }`),
    'spec.egress[0].protocols[0].tcp: found no field, expected destinationPort',
  ],
  [
    'port 0',
    withRule(
      `{ action: Deny, to: [${PEER}], protocols: [{ tcp: { destinationPort: { number: 0 } } }] }`,
    ),
    'spec.egress[0].protocols[0].tcp.destinationPort.number: found 0, expected a port from 1 to 65535, as a number',
  ],
  [
    'a range of one port',
    withRule(
      `{ action: Deny, to: [${PEER}], protocols: [{ tcp: { destinationPort: { range: { start: 5, end: 5 } } } }] }`,
    ),
    'spec.egress[0].protocols[0].tcp.destinationPort.range.end: found 5, expected more than 5, as start is',
  ],
  [
    'a named port of a network',
    withRule(
      '{ action: Deny, to: [{ networks: [10.0.0.0/8] }], protocols: [{ destinationNamedPort: web }] }',
    ),
    'spec.egress[0].protocols[0].destinationNamedPort: can not stand beside networks or domainNames, which have no named ports',
  ],
  [
    'a named port of a Pass rule',
    withRule(`{ action: Pass, to: [${PEER}], protocols: [{ destinationNamedPort: web }] }`),
    'spec.egress[0].protocols[0].destinationNamedPort: is not supported in Pass rules: write port numbers',
  ],
]

for (const [why, spec, fault] of FAULTS) {
  test(`loadPolicies refuses in a ClusterNetworkPolicy: ${why}`, () => {
    const { policies, faults } = loadPolicies(`${HEADER}spec: { ${spec} }\n`, 'f', {
      cidrMatchesEndpoints: true,
    })
    assert.deepEqual(policies, [])
    assert.deepEqual(
      faults.map(({ message }) => message.slice(0, fault.length)),
      [fault],
    )
  })
}
