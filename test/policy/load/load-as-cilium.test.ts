// What Cilium accepts with a defined meaning has the same meaning here, and `policy lint` reports it as `read-as`.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { formatFault, type Fault } from '../../../src/core/errors.ts'
import { formatPrefix } from '../../../src/core/ip.ts'
import { formatPortRange } from '../../../src/core/protocol.ts'
import { indexLabels, policySelects } from '../../../src/policy/match/labels.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { DEFAULT_IDENTITY_LABELS, IdentityLabels } from '../../../src/policy/identity-labels.ts'
import type { Policy, Rule } from '../../../src/policy/rule.ts'
import { lintText, mkFile } from '../../support/nodes/lint.ts'

interface Loaded {
  readonly policies: readonly Policy[]
  readonly notes: readonly string[]
}

function load(text: string, file = 'p.yaml'): Loaded {
  const notes: Fault[] = []
  const { policies, faults } = loadPolicies(text, file, { notes, ingress: 'ignore' })
  assert.deepEqual(faults.map(formatFault), [])
  return { policies, notes: notes.map(({ message }) => message) }
}

function show({ action, peers, toPorts }: Rule): string {
  const who =
    peers.kind === 'any'
      ? 'any'
      : peers.selectors.map((each) =>
          each.kind === 'cidr'
            ? [each.prefix, ...each.except].map(formatPrefix).join(' except ')
            : each.kind,
        )
  const ports = toPorts?.map(({ ports: ranges, dns }) => {
    const names = dns === undefined ? '' : ` dns ${dns.map(({ text }) => text).join(' ')}`
    return `${ranges.map(formatPortRange).join(' ')}${names}`
  })
  return `${action} ${String(who)} ports ${ports?.join('; ') ?? 'every'}`
}

const RULES: readonly (readonly [
  why: string,
  spec: string,
  rules: readonly string[],
  note: RegExp,
])[] = [
  [
    'host bits in toCIDR are masked',
    'egress: [{ toCIDR: [10.1.2.3/8] }]',
    ['allow 10.0.0.0/8 ports every'],
    /toCIDR\[0\]: host bits are masked: 10\.1\.2\.3\/8 is 10\.0\.0\.0\/8/,
  ],
  [
    'host bits in toCIDRSet and its exceptions are masked',
    'egress: [{ toCIDRSet: [{ cidr: "2001:db8::1/32", except: ["2001:db8:1::1/48"] }] }]',
    ['allow 2001:db8::/32 except 2001:db8:1::/48 ports every'],
    /2001:db8::1\/32 is 2001:db8::\/32/,
  ],
  [
    'an empty rules.dns is every name',
    'egress: [{ toPorts: [{ ports: [{ port: "53", protocol: UDP }], rules: { dns: [] } }] }]',
    ['allow any ports 53/UDP dns *'],
    /rules\.dns: an empty list is every name/,
  ],
  [
    'an entry of toPorts without ports is every port',
    'egress: [{ toCIDR: [10.0.0.0/8], toPorts: [{}] }]',
    ['allow 10.0.0.0/8 ports every'],
    /toPorts\[0\]: an entry without ports is every port/,
  ],
  [
    'an empty list of ports is every port, beside DNS rules that stay',
    'egress: [{ toCIDR: [10.0.0.0/8], toPorts: [{ ports: [] }, { ports: [{ port: "53", protocol: TCP }], rules: { dns: [{ matchName: a.io }] } }] }]',
    ['allow 10.0.0.0/8 ports every', 'allow 10.0.0.0/8 ports 53/TCP dns a.io'],
    /toPorts\[0\]: an entry without ports is every port/,
  ],
  [
    'without peers it is every port of any peer',
    'egress: [{ toPorts: [{}] }]',
    ['allow any ports every'],
    /an entry without ports/,
  ],
  [
    'in egressDeny it denies every port',
    'egressDeny: [{ toEntities: [world], toPorts: [{}] }]',
    ['deny entity ports every'],
    /an entry without ports/,
  ],
]

for (const [why, spec, rules, note] of RULES) {
  test(`loadPolicies reads as Cilium does: ${why}`, () => {
    const text = mkFile(`{ endpointSelector: {}, ${spec} }`)
    const { policies, notes } = load(text)
    assert.deepEqual(policies[0]?.rules.map(show), rules)
    assert.match(notes.join('\n'), note)
    assert.ok(
      lintText(text).some((each) => each.endsWith(' read-as')),
      'lint reports it',
    )
  })
}

test("loadPolicies reads a selector that names another namespace as one of the policy's own namespace", () => {
  const { policies, notes } = load(
    mkFile(
      '{ endpointSelector: { matchLabels: { app: a, "k8s:io.kubernetes.pod.namespace": other } }, egress: [{}] }',
    ),
  )
  const [policy] = policies
  assert.ok(policy !== undefined)
  const selects = (namespace: string): boolean =>
    policySelects(
      policy,
      indexLabels(['k8s:app=a', `k8s:io.kubernetes.pod.namespace=${namespace}`]),
    )
  assert.deepEqual([selects('prod'), selects('other')], [true, false])
  assert.match(notes.join(), /selects in its own namespace: other is read as prod/)
})

test('loadPolicies accepts metadata.description, which Kubernetes drops', () => {
  const text =
    'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p, description: what it is for }\nspec: { endpointSelector: {}, egress: [{}] }\n'
  const { policies, notes } = load(text)
  assert.equal(policies.length, 1)
  assert.match(notes.join(), /metadata\.description: Kubernetes drops this field/)
})

test('loadPolicies reads a list of rules of the old agent API as clusterwide policies', () => {
  const rules = [
    {
      labels: [{ key: 'name', value: 'names' }],
      endpointSelector: { matchLabels: { app: 'test' } },
      egress: [{ toFQDNs: [{ matchName: 'my-service.example' }] }],
    },
    {
      endpointSelector: { matchLabels: { 'k8s:role': 'db' } },
      ingress: [{ fromEndpoints: [{}] }],
      egressDeny: [{ toCIDR: ['10.0.0.0/8'] }],
    },
  ]
  const { policies } = load(JSON.stringify(rules, undefined, 2), 'some/web.json')
  const shown = policies.map(({ kind, name, namespace, rules: read, halfEnforced, position }) => [
    `${kind} ${namespace ?? ''}/${name}`,
    read.map(show).join(),
    halfEnforced ?? false,
    position.line,
  ])
  assert.deepEqual(shown, [
    ['CiliumClusterwideNetworkPolicy /web-1', 'allow fqdn ports every', false, 2],
    ['CiliumClusterwideNetworkPolicy /web-2', 'deny 10.0.0.0/8 ports every', true, 24],
  ])
})

test('loadPolicies reports the place of a wrong item in a list of rules', () => {
  const rows: readonly (readonly [text: string, fault: string])[] = [
    [
      '[{ "egress": [{}] }]',
      '1:2: [0]: found no endpointSelector, expected one; `{}` selects every endpoint',
    ],
    [
      '[{ "kind": "CiliumNetworkPolicy" }]',
      '1:2: [0]: found a policy in a list, expected a rule: write it as a document',
    ],
    [
      '[{ "endpointSelector": {}, "egres": [], "egress": [{}] }]',
      '1:28: unknown field [0].egres; did you mean "egress"?',
    ],
    [
      '[{ "nodeSelector": {}, "egress": [{}] }]',
      '1:4: [0].nodeSelector: is not supported: policies select endpoints',
    ],
  ]
  for (const [text, fault] of rows) {
    const { policies, faults } = loadPolicies(text, 'f.json')
    assert.deepEqual(policies, [])
    assert.equal(faults.map(formatFault)[0]?.replace(/^f\.json:/, ''), fault, text)
  }
})

/** A field, and an egress rule (or a part of the spec) that has it. */
const REFUSED: readonly (readonly [field: string, spec: string])[] = [
  ['ingress', 'egress: [{}], ingress: [{}]'],
  ['ingressDeny', 'egress: [{}], ingressDeny: [{}]'],
  ['nodeSelector', 'egress: [{}], nodeSelector: {}'],
  ['log', 'egress: [{}], log: { value: x }'],
  ['toRequires', 'egress: [{ toRequires: [{}] }]'],
  ['toServices', 'egress: [{ toServices: [{}] }]'],
  ['toGroups', 'egress: [{ toGroups: [{}] }]'],
  ['toNodes', 'egress: [{ toNodes: [{}] }]'],
  ['icmps', 'egress: [{ icmps: [{}] }]'],
  ['authentication', 'egress: [{ authentication: { mode: required } }]'],
  ['cidrGroupRef', 'egress: [{ toCIDRSet: [{ cidrGroupRef: x }] }]'],
  ['cidrGroupSelector', 'egress: [{ toCIDRSet: [{ cidrGroupSelector: {} }] }]'],
  ['terminatingTLS', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], terminatingTLS: {} }] }]'],
  ['originatingTLS', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], originatingTLS: {} }] }]'],
  ['serverNames', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], serverNames: [x] }] }]'],
  ['listener', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], listener: {} }] }]'],
  ['rules.http', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], rules: { http: [] } }] }]'],
  ['rules.kafka', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], rules: { kafka: [] } }] }]'],
  ['rules.l7', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], rules: { l7: [] } }] }]'],
  ['rules.l7proto', 'egress: [{ toPorts: [{ ports: [{ port: "1" }], rules: { l7proto: x } }] }]'],
  ['init', 'egress: [{ toEntities: [init] }]'],
  ['ingress', 'egress: [{ toEntities: [ingress] }]'],
  ['unmanaged', 'egress: [{ toEntities: [unmanaged] }]'],
  ['remote-node', 'egress: [{ toEntities: [remote-node] }]'],
  ['health', 'egress: [{ toEntities: [health] }]'],
  ['kube-apiserver', 'egress: [{ toEntities: [kube-apiserver] }]'],
  ['toFQDNs', 'egressDeny: [{ toFQDNs: [{ matchName: a }] }]'],
  ['rules', 'egressDeny: [{ toPorts: [{ ports: [{ port: "1" }], rules: { dns: [] } }] }]'],
  ['ICMP', 'egress: [{ toPorts: [{ ports: [{ port: "1", protocol: ICMP }] }] }]'],
]

test('docs/policies.md lists every field that is refused', () => {
  const docs = readFileSync('docs/policies.md', 'utf8')
  const [, list = ''] = docs.split('### Fields of Cilium that are refused')
  for (const [field, spec] of REFUSED) {
    const { faults } = loadPolicies(mkFile(`{ endpointSelector: {}, ${spec} }`), 'p.yaml')
    const said = faults.map(formatFault).join('\n')
    assert.match(said, /is not supported/, spec)
    assert.ok(list.includes(`\`${field}\``), `docs/policies.md lists ${field}`)
  }
})

test("DEFAULT_IDENTITY_LABELS leave out what Cilium's list leaves out", () => {
  const labels = new IdentityLabels(DEFAULT_IDENTITY_LABELS)
  const rows: readonly (readonly [label: string, counts: boolean, reason: string])[] = [
    ['k8s:app=a', true, 'chosen by people'],
    ['k8s:app.kubernetes.io/name=a', true, 'the recommended labels'],
    ['k8s:io.kubernetes.pod.namespace=a', true, 'the namespace'],
    ['k8s:io.cilium.k8s.namespace.labels.team=a', true, "the namespace's labels"],
    ['k8s:io.cilium.k8s.policy.cluster=a', true, 'the cluster'],
    ['k8s:io.cilium.k8s.policy.serviceaccount=a', true, 'the service account'],
    ['k8s:job-name=a', true, 'one for all pods of a job'],
    ['k8s:io.kubernetes.container.name=a', false, 'of Kubernetes itself'],
    ['k8s:kubernetes.io/arch=amd64', false, 'of Kubernetes itself'],
    ['k8s:k8s.io/x=a', false, 'of Kubernetes itself'],
    ['k8s:beta.kubernetes.io/os=linux', false, 'of Kubernetes itself'],
    ['k8s:failure-domain.beta.kubernetes.io/zone=a', false, 'where it runs'],
    ['k8s:topology.kubernetes.io/zone=a', false, 'where it runs'],
    ['k8s:statefulset.kubernetes.io/pod-name=a-0', false, 'one for each pod'],
    ['k8s:apps.kubernetes.io/pod-index=0', false, 'one for each pod'],
    ['k8s:batch.kubernetes.io/job-completion-index=0', false, 'one for each pod'],
    ['k8s:batch.kubernetes.io/controller-uid=a', false, 'one for each job'],
    ['k8s:controller-uid=a', false, 'one for each job'],
    ['k8s:pod-template-hash=a', false, 'one for each version'],
    ['k8s:pod-template-generation=1', false, 'one for each version'],
    ['k8s:controller-revision-hash=a', false, 'one for each version'],
    ['k8s:annotation.a=b', false, 'an annotation'],
    ['k8s:etcd_node=a', false, "one for each member's pod"],
  ]
  for (const [label, counts, reason] of rows) {
    assert.equal(labels.of([label]).length === 1, counts, `${label}: ${reason}`)
  }
})
