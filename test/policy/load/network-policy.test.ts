import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../../src/core/errors.ts'
import { formatPrefix } from '../../../src/core/ip.ts'
import { formatPortRange, formatProtocol } from '../../../src/core/protocol.ts'
import { formatSelector } from '../../../src/policy/match/labels.ts'
import { loadPolicies, type LoadOptions } from '../../../src/policy/load/load.ts'
import type { PeerSelector, PortRule } from '../../../src/policy/rule.ts'

const HEADER =
  'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: p, namespace: prod }\n'

function load(spec: string, options: LoadOptions = {}) {
  return loadPolicies(`${HEADER}spec: { ${spec} }\n`, 'f', options)
}

function showPeer(peer: PeerSelector): string {
  if (peer.kind === 'entity') return peer.entity
  if (peer.kind === 'fqdn') return peer.pattern.text
  if (peer.kind === 'endpoints') return `{${formatSelector(peer.selector)}}`
  return [peer.prefix, ...peer.except].map(formatPrefix).join(' except ')
}

function showPorts({ ports, named = [] }: PortRule): string {
  const names = named.map(
    ({ name, protocols }) => `${name}/${protocols.map(formatProtocol).join()}`,
  )
  return [...ports.map(formatPortRange), ...names].join(' ')
}

const NS = 'k8s:io.kubernetes.pod.namespace'
const ROWS: readonly (readonly [why: string, rule: string, shown: string])[] = [
  ['the empty rule: everything', '{}', 'all *'],
  ['an empty to and empty ports: everything', '{ to: [], ports: [] }', 'all *'],
  [
    'a podSelector: of its own namespace',
    '{ to: [{ podSelector: { matchLabels: { app: db } } }] }',
    `{app=db,${NS}=prod} *`,
  ],
  [
    'a podSelector with a source: only of that source',
    '{ to: [{ podSelector: { matchLabels: { "external:app": db } } }] }',
    `{external:app=db,${NS}=prod} *`,
  ],
  ['an empty namespaceSelector: every namespace', '{ to: [{ namespaceSelector: {} }] }', '{*} *'],
  [
    'a namespace by the label that is its name',
    '{ to: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: ops } }, podSelector: { matchExpressions: [{ key: tier, operator: NotIn, values: [b, a] }] } }] }',
    `{${NS}=ops,tier notin (a,b)} *`,
  ],
  [
    'another label of a namespace',
    '{ to: [{ namespaceSelector: { matchLabels: { team: x } } }] }',
    '{k8s:io.cilium.k8s.namespace.labels.team=x} *',
  ],
  [
    'ipBlock beside another peer',
    '{ to: [{ ipBlock: { cidr: 10.0.0.0/8, except: [10.1.0.0/16] } }, { podSelector: {} }] }',
    `10.0.0.0/8 except 10.1.0.0/16 {${NS}=prod} *`,
  ],
  [
    'ports: TCP unless said, every port unless said, a range, a name',
    '{ ports: [{ port: 443 }, { protocol: UDP }, { port: 8000, endPort: 8100 }, { port: web, protocol: SCTP }] }',
    'all 443/TCP UDP 8000-8100/TCP web/SCTP',
  ],
]

for (const [why, rule, shown] of ROWS) {
  test(`loadPolicies reads in a NetworkPolicy: ${why}`, () => {
    const { policies, faults } = load(`podSelector: {}, policyTypes: [Egress], egress: [${rule}]`)
    assert.deepEqual(faults.map(formatFault), [])
    const [policy] = policies
    const [first] = policy?.rules ?? []
    assert.ok(policy !== undefined && first?.peers.kind === 'selectors')
    const ports = first.toPorts?.map(showPorts).join('; ') ?? '*'
    assert.equal([...first.peers.selectors.map(showPeer), ports].join(' '), shown)
    assert.deepEqual(
      [policy.kind, policy.namespace, policy.defaultDeny],
      ['NetworkPolicy', 'prod', true],
    )
  })
}

test('loadPolicies reads a NetworkPolicy without egress as default deny only if it lists Egress', () => {
  const { policies } = load('podSelector: {}, policyTypes: [Egress]')
  assert.deepEqual(
    policies.map(({ rules, defaultDeny }) => [rules.length, defaultDeny]),
    [[0, true]],
  )
  const half = load('podSelector: {}, ingress: [{}]', { ingress: 'ignore' })
  assert.deepEqual(
    half.policies.map(({ defaultDeny, halfEnforced }) => [defaultDeny, halfEnforced]),
    [[false, true]],
  )
})

const FAULTS: readonly (readonly [spec: string, faults: readonly string[]])[] = [
  [
    'podSelector: {}, egress: [{}]',
    [
      '4:7: spec: found no policyTypes, which means Ingress as well: namegate decides egress only, expected [Egress]',
    ],
  ],
  [
    'podSelector: {}, policyTypes: [Ingress, Egress]',
    ['4:26: spec.policyTypes: Ingress is not supported: namegate decides egress only'],
  ],
  [
    'policyTypes: [Egress]',
    ['4:7: spec: found no podSelector, expected one; `{}` selects every pod'],
  ],
  [
    'podSelector: {}, policyTypes: [Egress], egress: [{ to: [{}] }]',
    [
      '4:65: spec.egress[0].to[0]: found no podSelector, namespaceSelector or ipBlock, expected one',
    ],
  ],
  [
    'podSelector: {}, policyTypes: [Egress], egress: [{ to: , ports: [{ port: 0 }] }]',
    [
      '4:60: spec.egress[0].to: found nothing, expected a list',
      '4:82: spec.egress[0].ports[0].port: found 0, expected a port from 1 to 65535, or the name of one',
    ],
  ],
  [
    'podSelector: {}, policyTypes: [Egress], egress: [{ ports: [{ port: 9, protocol: ANY }, { endPort: 9 }] }]',
    [
      '4:89: spec.egress[0].ports[0].protocol: found "ANY", expected TCP, UDP or SCTP',
      '4:98: spec.egress[0].ports[1].endPort: can not stand without port',
    ],
  ],
]

for (const [spec, expected] of FAULTS) {
  test(`loadPolicies refuses the NetworkPolicy spec { ${spec} }`, () => {
    const { policies, faults } = load(spec)
    assert.deepEqual(
      faults.map((fault) => formatFault(fault).replace(/^f:/, '')),
      expected,
    )
    assert.deepEqual(policies, [])
  })
}
