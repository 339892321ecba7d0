// What can be asked of which server when the client chooses it: from a server's address and port to patterns.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAY_ASK, NAME_DENIED, SERVER_DENIED } from '../../../src/enforcement/dns-verdicts.ts'
import { TCP, UDP, type DnsProtocol } from '../../../src/core/protocol.ts'
import { ServerIdentity } from '../../../src/enforcement/server-identity.ts'
import {
  mkEndpoint,
  mkPolicies,
  Node,
  prefixOf,
  wireOf,
  type NodeOptions,
} from '../../support/nodes/node.ts'

const TEXTS = { [MAY_ASK]: 'yes', [NAME_DENIED]: 'name', [SERVER_DENIED]: 'server' }

/** An endpoint `pod` under these policies, on its own node. The cluster's DNS is an endpoint, too. */
function mkNode(options: NodeOptions, ...specs: readonly string[]): Node {
  const node = new Node({ nodeAddresses: ['192.0.2.1'], ...options })
  node.setEndpoints([
    mkEndpoint('pod', ['10.0.1.5'], ['k8s:app=pod']),
    mkEndpoint('dns', ['10.0.1.53'], ['k8s:app=dns']),
  ])
  const selected = specs.map((spec) => `endpointSelector: { matchLabels: { app: pod } }\n${spec}`)
  node.setPolicies(mkPolicies(...selected))
  return node
}

function ask(
  node: Node,
  server: string,
  name: string,
  port = 53,
  protocol: DnsProtocol = UDP,
  from = 'pod',
): string {
  const identities = new ServerIdentity(node.core.ipcache)
  const { family, octets } = prefixOf(server)
  identities.look(family, octets, 0)
  const { id } = node.endpoint(from)
  const { dnsVerdicts } = node.policies
  const verdict = dnsVerdicts.judgeAt(
    id,
    Object.assign(identities, { port, protocol }),
    wireOf(name),
    0,
  )
  return Object.entries(TEXTS).find(([number]) => Number(number) === verdict)?.[1] ?? 'unknown'
}

const DNS =
  'toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.x" } ] } } ]'
const PORT = 'toPorts: [ { ports: [ { port: "53", protocol: UDP } ] } ]'
const QUAD9 = 'toCIDR: [ 9.9.9.0/24 ]'

type Row = readonly [
  spec: string,
  expected: readonly [server: string, name: string, verdict: string][],
  reason: string,
]

const ROWS: readonly Row[] = [
  [
    `egress: [ { ${QUAD9}, ${DNS} } ]`,
    [
      ['9.9.9.9', 'a.x', 'yes'],
      ['9.9.9.9', 'a.y', 'name'],
      ['1.1.1.1', 'a.x', 'server'],
      ['2001:db8::1', 'a.x', 'server'],
    ],
    'a rule with DNS rules admits the servers of its peers, and allows its names there',
  ],
  [
    `egress: [ { ${DNS} } ]`,
    [
      ['9.9.9.9', 'a.x', 'yes'],
      ['2001:db8::1', 'a.y', 'name'],
    ],
    'no peer field means any server',
  ],
  [
    `egress: [ { ${QUAD9}, ${DNS} }, { toCIDR: [ 1.1.1.1/32 ], ${PORT} } ]`,
    [
      ['1.1.1.1', 'a.y', 'yes'],
      ['9.9.9.9', 'a.y', 'name'],
    ],
    'each server by the rules that include it',
  ],
  [
    `egress: [ { toCIDR: [ 9.0.0.0/8 ], ${DNS} } ]\negressDeny: [ { toCIDR: [ 9.9.9.9/32 ] } ]`,
    [
      ['9.9.9.9', 'a.x', 'server'],
      ['9.9.9.10', 'a.x', 'yes'],
    ],
    'deny beats allow',
  ],
  [
    `egress: [ { toCIDRSet: [ { cidr: 9.0.0.0/8, except: [ 9.9.9.0/24 ] } ], ${PORT} } ]`,
    [
      ['9.9.9.9', 'a.x', 'server'],
      ['9.9.8.9', 'a.x', 'yes'],
    ],
    'an exception of a prefix',
  ],
  [
    `egress: [ { toEntities: [ cluster ], ${DNS} } ]`,
    [
      ['10.0.1.53', 'a.x', 'yes'],
      ['192.0.2.1', 'a.x', 'yes'],
      ['9.9.9.9', 'a.x', 'server'],
    ],
    'endpoints and the node are the cluster',
  ],
  [
    'egress: [ { toEntities: [ world ] } ]',
    [
      ['9.9.9.9', 'a.y', 'yes'],
      ['2001:db8::1', 'a.y', 'yes'],
      ['10.0.1.53', 'a.y', 'server'],
    ],
    'every port of the world, nothing of the cluster',
  ],
  [
    `egress: [ { toFQDNs: [ { matchName: dns.x } ], ${PORT} } ]`,
    [['9.9.9.9', 'a.x', 'server']],
    'a toFQDNs peer never permits asking',
  ],
  [
    `egress: [ { ${QUAD9}, toPorts: [ { ports: [ { port: "5353" } ] } ] } ]`,
    [['9.9.9.9', 'a.x', 'server']],
    'another port',
  ],
  [`egress: [ {} ]`, [['9.9.9.9', 'a.x', 'server']], 'the empty rule allows nothing'],
  [
    `enableDefaultDeny: { egress: false }\negress: [ { ${QUAD9}, ${DNS} } ]`,
    [
      ['1.1.1.1', 'a.y', 'yes'],
      ['9.9.9.9', 'a.y', 'yes'],
    ],
    'nothing turns default deny on',
  ],
]

for (const [spec, expected, reason] of ROWS) {
  test(`serverRulesOf: ${reason}: ${spec.replaceAll('\n', ' ')}`, () => {
    const node = mkNode({}, spec)
    for (const [server, name, verdict] of expected) {
      assert.equal(ask(node, server, name), verdict, `${name} of ${server}`)
    }
  })
}

test('serverRulesOf uses the default of an endpoint that no policy selects', () => {
  const rows: readonly (readonly [NodeOptions, server: string, verdict: string, reason: string])[] =
    [
      [{ defaultEgress: 'allow' }, '9.9.9.9', 'yes', 'everything is open'],
      [{ defaultEgress: 'audit' }, '9.9.9.9', 'yes', 'everything passes'],
      [{ defaultEgress: 'deny' }, '9.9.9.9', 'server', 'nothing is open'],
      [{ defaultEgress: 'allow-known' }, '9.9.9.9', 'server', 'not known'],
      [{ defaultEgress: 'allow-known' }, '10.0.1.53', 'yes', 'a known endpoint'],
      [
        { defaultEgress: 'allow-named' },
        '9.9.9.9',
        'yes',
        'a question gives addresses their names',
      ],
      [{ withoutDnsRules: 'deny' }, '9.9.9.9', 'name', 'no rule permits a name'],
    ]
  for (const [options, server, verdict, reason] of rows) {
    assert.equal(ask(mkNode(options), server, 'a.x'), verdict, reason)
  }
})

test("DnsVerdicts.judgeAt follows changes of policy, of ports and of an address's class", () => {
  const node = mkNode({}, `egress: [ { ${QUAD9}, ${DNS} } ]`)
  assert.equal(ask(node, '9.9.9.9', 'a.x'), 'yes')
  assert.equal(ask(node, '9.9.9.9', 'a.x', 54), 'server')
  node.setPolicies(mkPolicies(`egress: [ { toEntities: [ cluster ], ${DNS} } ]`))
  assert.equal(ask(node, '9.9.9.9', 'a.x'), 'server')
  node.setEndpoints([
    mkEndpoint('pod', ['10.0.1.5'], ['k8s:app=pod']),
    mkEndpoint('dns', ['9.9.9.9'], ['k8s:app=dns']),
  ])
  assert.equal(ask(node, '9.9.9.9', 'a.x'), 'yes', 'now an endpoint')
  assert.equal(ask(node, '10.0.1.53', 'a.x'), 'server', 'no endpoint any more')
})

test('DnsVerdicts.judgeAt drops kinds of servers beyond a bound, and stays right', () => {
  const ports = Array.from({ length: 100 }, (_, i) => `{ port: "${1000 + i}" }`).join(', ')
  const rules = 'rules: { dns: [ { matchPattern: "*.x" } ] }'
  const node = mkNode({}, `egress: [ { toPorts: [ { ports: [ ${ports} ], ${rules} } ] } ]`)
  for (let round = 0; round < 2; round++) {
    for (let port = 950; port < 1150; port++) {
      const admitted = port >= 1000 && port < 1100
      assert.equal(ask(node, '9.9.9.9', 'a.x', port), admitted ? 'yes' : 'server')
      assert.equal(ask(node, '9.9.9.9', 'a.y', port), admitted ? 'name' : 'server')
    }
  }
})

// Cilium's proxy decides by endpoint, server, port, protocol and name. Its servers 1 to 4 are 198.18.0.1 to .4.

const dnsRule = (server: string, port: number, protocol: string, ...names: readonly string[]) => {
  const dns = names.map(
    (name) => (name.includes('*') ? 'matchPattern' : 'matchName') + `: "${name}"`,
  )
  const rules =
    dns.length === 0 ? '' : `, rules: { dns: [ ${dns.map((each) => `{ ${each} }`).join(', ')} ] }`
  const peer = server === '*' ? '' : `toCIDR: [ 198.18.0.${server}/32 ], `
  return `{ ${peer}toPorts: [ { ports: [ { port: "${port}", protocol: ${protocol} } ]${rules} } ] }`
}
const specOf = (app: string, ...rules: readonly string[]): string =>
  `endpointSelector: { matchLabels: { app: "${app}" } }\negress: [ ${rules.join(', ')} ]`

const FULL_PATH = [
  specOf(
    '1',
    dnsRule('1', 53, 'UDP', '*.ubuntu.com', 'aws.amazon.com'),
    dnsRule('1', 53, 'TCP', 'sub.ubuntu.com'),
    dnsRule('2', 53, 'UDP', 'cilium.io'),
    dnsRule('*', 54, 'UDP', 'example.com'),
  ),
  specOf(
    '3',
    dnsRule('1', 53, 'UDP', 'example.com'),
    dnsRule('3', 53, 'UDP', '*'),
    dnsRule('3', 53, 'TCP', 'example.com'),
    dnsRule('4', 53, 'UDP'),
  ),
]

const CASES: readonly (readonly [
  from: string,
  server: number,
  port: number,
  protocol: DnsProtocol,
  name: string,
  verdict: string,
  reason: string,
])[] = [
  ['1', 1, 53, UDP, 'www.ubuntu.com', 'yes', '1: permitted'],
  ['1', 1, 53, TCP, 'www.ubuntu.com', 'name', '2: TCP allows only sub.ubuntu.com'],
  ['1', 1, 53, TCP, 'sub.ubuntu.com', 'yes', '3: permitted over TCP'],
  ['1', 1, 53, UDP, 'sub.ubuntu.com', 'yes', '4: permitted over UDP'],
  ['1', 1, 54, UDP, 'cilium.io', 'name', '5: port 54 allows only example.com'],
  ['1', 2, 53, UDP, 'cilium.io', 'yes', '6: permitted'],
  ['1', 2, 53, UDP, 'aws.amazon.com', 'name', '7: server 2 allows only cilium.io'],
  ['1', 1, 54, UDP, 'example.com', 'yes', '8: permitted of any server'],
  ['2', 1, 53, UDP, 'cilium.io', 'server', '9: no policy selects endpoint 2'],
  ['3', 1, 53, UDP, 'example.com', 'yes', '10: permitted'],
  ['3', 1, 53, UDP, 'aws.amazon.com', 'name', '11: not a name of server 1'],
  ['3', 1, 54, UDP, 'example.com', 'server', '12: not a port of server 1'],
  ['3', 2, 53, UDP, 'example.com', 'server', '13: not a server'],
  ['3', 3, 53, UDP, 'example.com', 'yes', '14: server 3 allows every name over UDP'],
  ['3', 3, 53, TCP, 'example.com', 'yes', '15: permitted over TCP'],
  ['3', 3, 53, TCP, 'amazon.com', 'name', '16: TCP allows only example.com'],
  ['3', 4, 53, TCP, 'example.com', 'server', '17: server 4 is only for UDP'],
  ['3', 4, 53, UDP, 'example.com', 'yes', '18: a rule without rules.dns'],
]

test('DnsVerdicts.judgeAt decides by endpoint, server, port, protocol and name, as Cilium does', () => {
  const node = new Node({ defaultEgress: 'deny' })
  node.setEndpoints(
    ['1', '2', '3'].map((name) => mkEndpoint(name, [`10.0.1.${name}`], [`k8s:app=${name}`])),
  )
  node.setPolicies(mkPolicies(...FULL_PATH))
  for (const [from, server, port, protocol, name, verdict, reason] of CASES) {
    assert.equal(ask(node, `198.18.0.${server}`, name, port, protocol, from), verdict, reason)
  }
})
