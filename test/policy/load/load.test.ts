import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { formatFault, type Position } from '../../../src/core/errors.ts'
import { formatPrefix } from '../../../src/core/ip.ts'
import { formatPortRange } from '../../../src/core/protocol.ts'
import { formatSelector } from '../../../src/policy/match/labels.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import type { Policy, Rule } from '../../../src/policy/rule.ts'

const HEADER = 'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\n'

function mkPolicies(text: string): readonly Policy[] {
  const { policies, faults } = loadPolicies(text, 'p.yaml')
  assert.deepEqual(faults.map(formatFault), [])
  return policies
}

/** The policy of a spec in flow style. */
function mkPolicy(spec: string): Policy {
  const [policy] = mkPolicies(`${HEADER}spec: { endpointSelector: {}, ${spec} }\n`)
  return policy ?? assert.fail('no policy')
}

/** A rule as one line, for tables. */
function show({ action, peers, toPorts }: Rule): string {
  const who =
    peers.kind === 'any'
      ? 'any'
      : `[${peers.selectors
          .map((each) => {
            if (each.kind === 'fqdn') return each.pattern.text
            if (each.kind === 'entity') return each.entity
            if (each.kind === 'endpoints') return `{${formatSelector(each.selector)}}`
            return [each.prefix, ...each.except].map(formatPrefix).join(' except ')
          })
          .join(' ')}]`
  const ports = toPorts?.map(({ ports, dns }) => {
    const names = dns === undefined ? '' : ` dns ${dns.map(({ text }) => text).join(' ')}`
    return `${ports.map(formatPortRange).join(' ')}${names}`
  })
  return `${action} ${who}${ports === undefined ? '' : ` ports ${ports.join('; ')}`}`
}

const RULES: readonly (readonly [why: string, spec: string, rules: readonly string[]])[] = [
  [
    'toFQDNs',
    'egress: [{ toFQDNs: [{ matchName: A.io. }, { matchPattern: "*.b.io" }] }]',
    ['allow [a.io *.b.io]'],
  ],
  [
    'toCIDR',
    'egress: [{ toCIDR: [10.0.0.0/8, 192.0.2.1, "fd00::/8"] }]',
    ['allow [10.0.0.0/8 192.0.2.1/32 fd00::/8]'],
  ],
  [
    'toCIDRSet with exceptions',
    'egress: [{ toCIDRSet: [{ cidr: 10.0.0.0/8, except: [10.96.0.0/12, 10.0.0.0/8] }, { cidr: "::/0" }] }]',
    ['allow [10.0.0.0/8 except 10.96.0.0/12 except 10.0.0.0/8 ::/0]'],
  ],
  [
    'every entity',
    'egress: [{ toEntities: [host, cluster, world, world-ipv4, world-ipv6, all, none] }]',
    ['allow [host cluster world world-ipv4 world-ipv6 all none]'],
  ],
  [
    'a port as text and as number',
    'egress: [{ toPorts: [{ ports: [{ port: "443", protocol: TCP }, { port: 53, protocol: UDP }] }] }]',
    ['allow any ports 443/TCP 53/UDP'],
  ],
  [
    'a range',
    'egress: [{ toPorts: [{ ports: [{ port: "80", endPort: 90, protocol: sctp }] }] }]',
    ['allow any ports 80-90/SCTP'],
  ],
  [
    'a range of one, and endPort 0',
    'egress: [{ toPorts: [{ ports: [{ port: 8, endPort: 8, protocol: TCP }, { port: 9, endPort: 0, protocol: TCP }] }] }]',
    ['allow any ports 8/TCP 9/TCP'],
  ],
  [
    'port 0: all of that protocol',
    'egress: [{ toPorts: [{ ports: [{ port: "0", protocol: TCP }] }] }]',
    ['allow any ports TCP'],
  ],
  [
    'no protocol: TCP, UDP and SCTP',
    'egress: [{ toPorts: [{ ports: [{ port: "1" }] }] }]',
    ['allow any ports 1/TCP 1/UDP 1/SCTP'],
  ],
  [
    'ANY: TCP, UDP and SCTP',
    'egress: [{ toPorts: [{ ports: [{ port: "0", protocol: ANY }] }] }]',
    ['allow any ports TCP UDP SCTP'],
  ],
  [
    'DNS rules; matchName and matchPattern together are two',
    'egress: [{ toPorts: [{ ports: [{ port: "53", protocol: UDP }], rules: { dns: [{ matchName: a.io, matchPattern: "*.a.io" }, { matchPattern: "*" }] } }] }]',
    ['allow any ports 53/UDP dns a.io *.a.io *'],
  ],
  [
    'DNS rules with endPort equal to port',
    'egress: [{ toPorts: [{ ports: [{ port: 53, endPort: 53, protocol: UDP }], rules: { dns: [{ matchName: a }] } }] }]',
    ['allow any ports 53/UDP dns a'],
  ],
  [
    'rules without anything in it',
    'egress: [{ toPorts: [{ ports: [{ port: 53, protocol: UDP }], rules: {} }] }]',
    ['allow any ports 53/UDP'],
  ],
  [
    'egressDeny beside egress',
    'egress: [{ toEntities: [all] }], egressDeny: [{ toCIDR: [10.0.0.0/8], toPorts: [{ ports: [{ port: 25, protocol: TCP }] }] }]',
    ['allow [all]', 'deny [10.0.0.0/8] ports 25/TCP'],
  ],
  [
    'toPorts without peers: any peer',
    'egressDeny: [{ toPorts: [{ ports: [{ port: 25, protocol: TCP }] }] }]',
    ['deny any ports 25/TCP'],
  ],
  [
    'a present and empty peer field: nothing',
    'egress: [{ toCIDR: [] }, { toFQDNs: [], toPorts: [{ ports: [{ port: 1, protocol: TCP }] }] }]',
    ['allow []', 'allow [] ports 1/TCP'],
  ],
  [
    'an empty peer field beside another one',
    'egress: [{ toCIDR: [], toFQDNs: [{ matchName: a.io }] }]',
    ['allow [a.io]'],
  ],
  [
    'an empty toPorts: every port',
    'egress: [{ toEntities: [world], toPorts: [] }]',
    ['allow [world]'],
  ],
  ['the empty rule: nothing', 'egress: [{}], egressDeny: [{}]', []],
]

for (const [why, spec, rules] of RULES) {
  test(`loadPolicies reads ${why}`, () => assert.deepEqual(mkPolicy(spec).rules.map(show), rules))
}

const DEFAULT_DENY: readonly (readonly [spec: string, expected: boolean, why: string])[] = [
  ['egress: [{}]', true, 'it has egress'],
  ['egressDeny: [{ toEntities: [world] }]', true, 'it has egressDeny'],
  ['egress: [{}], enableDefaultDeny: { egress: false }', false, 'the spec sets false'],
  ['egressDeny: [{}], enableDefaultDeny: { egress: false }', false, 'the spec sets false'],
  ['enableDefaultDeny: { egress: true }', true, 'the spec sets true, without rules'],
  ['egress: [{}], enableDefaultDeny: { ingress: false }', true, 'the spec does not mention egress'],
  ['egress: [{}], enableDefaultDeny: {}', true, 'an empty mapping'],
  ['egress: [], egressDeny: [{}]', true, 'one of two lists has a rule'],
]

for (const [spec, expected, why] of DEFAULT_DENY) {
  test(`loadPolicies gives defaultDeny ${expected} for ${spec}: ${why}`, () => {
    assert.equal(mkPolicy(spec).defaultDeny, expected)
  })
}

test('loadPolicies reads annotations about answers, for every spec of a document', () => {
  const answersOf = (annotations: string): unknown =>
    mkPolicies(
      `apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p, annotations: {${annotations}} }\n` +
        'specs: [{ endpointSelector: {}, egress: [{}] }, { endpointSelector: {}, egress: [{}] }]\n',
    ).map(({ answers }) => answers)
  const all =
    'namegate.io/min-ttl: 1500ms, namegate.io/grace-after-ttl: 0s, namegate.io/cname-match: chain, namegate.io/svcb: strip'
  const want = { minTtl: 2, grace: 0, cnameMatch: 'chain', svcb: 'strip' }
  assert.deepEqual(answersOf(all), [want, want])
  assert.deepEqual(answersOf('namegate.io/svcb: pass'), [{ svcb: 'pass' }, { svcb: 'pass' }])
  assert.deepEqual(answersOf('other.io/svcb: x'), [undefined, undefined])
})

test('loadPolicies keeps names, namespaces, kinds, selectors and places', () => {
  const policies = mkPolicies(`# a comment only

---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: shop
  namespace: prod
  annotations: { other.io/x: y, namegate.io/audit: "false", namegate.io/allow-guarded: "false" }
  labels: { team: a }
  uid: 1-2-3
spec:
  description: text
  labels: [{ key: a, source: k8s }]
  endpointSelector:
    matchLabels: { app: shop, "k8s:tier": "1" }
    matchExpressions: []
  egress:
    - toEntities: [world]
status: {}
---
---
apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: all }
specs:
  - endpointSelector: {}
    egress: [{}]
  - endpointSelector: { matchLabels: { "any:io.kubernetes.pod.namespace": x } }
    egressDeny: [{ toCIDR: [10.0.0.0/8] }]
spec:
  endpointSelector: {}
  egress: [{}]
---
`)
  assert.deepEqual(
    policies.map(({ name, namespace, kind, selector, rules, position }) => [
      kind,
      namespace,
      name,
      Object.fromEntries(selector.matchLabels),
      rules.map(show),
      position.line,
    ]),
    [
      [
        'CiliumNetworkPolicy',
        'prod',
        'shop',
        { app: 'shop', 'k8s:tier': '1' },
        ['allow [world]'],
        13,
      ],
      ['CiliumClusterwideNetworkPolicy', undefined, 'all', {}, [], 32],
      ['CiliumClusterwideNetworkPolicy', undefined, 'all', {}, [], 27],
      [
        'CiliumClusterwideNetworkPolicy',
        undefined,
        'all',
        { 'any:io.kubernetes.pod.namespace': 'x' },
        ['deny [10.0.0.0/8]'],
        29,
      ],
    ],
  )
  assert.deepEqual(policies[0]?.rules[0]?.position, { file: 'p.yaml', line: 19, column: 7 })
})

test('loadPolicies puts a policy without namespace into default', () => {
  assert.equal(mkPolicy('egress: [{}]').namespace, 'default')
})

test('loadPolicies reads JSON and aliases', () => {
  const json = JSON.stringify({
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name: 'j' },
    spec: { endpointSelector: {}, egress: [{ toCIDR: ['10.0.0.0/8'] }] },
  })
  assert.deepEqual(mkPolicies(json)[0]?.rules.map(show), ['allow [10.0.0.0/8]'])
  const alias = 'egress: [{ toCIDR: &net [10.0.0.0/8] }], egressDeny: [{ toCIDR: *net }]'
  assert.deepEqual(mkPolicy(alias).rules.map(show), ['allow [10.0.0.0/8]', 'deny [10.0.0.0/8]'])
})

test('loadPolicies skips empty documents, and refuses a file that has no other', () => {
  const good = `${HEADER}spec: { endpointSelector: {}, egress: [{}] }\n`
  assert.equal(mkPolicies(`---\n${good}---\n# more to come\n`).length, 1)
  for (const text of ['', '# nothing\n', '---\n---\n', 'null\n']) {
    assert.deepEqual(loadPolicies(text, 'p.yaml').faults.map(formatFault), [
      'p.yaml:1:1: found no policy, expected one at least: to take its policies out of force, delete the file from its folder, or take it out of the configuration',
    ])
  }
})

test('loadPolicies loads a file completely or not at all', () => {
  const good = `${HEADER}spec: { endpointSelector: {}, egress: [{}] }\n`
  const { policies, faults } = loadPolicies(`${good}---\n${good.replace('name: p', 'nam: p')}`, 'p')
  assert.deepEqual([policies.length, faults.length], [0, 2])
})

test('loadPolicies finds a policy that is in two files', () => {
  const text = `${HEADER}spec: { endpointSelector: {}, egress: [{}] }\n`
  const seen = new Map<string, Position>()
  assert.deepEqual(loadPolicies(text, 'a.yaml', { seen }).faults, [])
  assert.deepEqual(loadPolicies(text, 'b.yaml', { seen }).faults.map(formatFault), [
    'b.yaml:3:19: metadata.name: found the CiliumNetworkPolicy default/p again, first at a.yaml:3',
  ])
  const clusterwide = text.replace('CiliumNetwork', 'CiliumClusterwideNetwork')
  assert.deepEqual(loadPolicies(clusterwide, 'c.yaml', { seen }).faults, [], 'another kind')
})

test('loadPolicies loads the example of the repository', () => {
  const file = 'config/policies/example.yaml'
  const { policies, faults } = loadPolicies(readFileSync(file, 'utf8'), file)
  assert.deepEqual(faults.map(formatFault), [])
  assert.deepEqual(policies[0]?.rules.map(show), [
    'allow any ports 53/TCP 53/UDP 53/SCTP dns example.com **.example.com example.org',
    'allow [example.com **.example.com] ports 443/TCP 80/TCP',
  ])
})
