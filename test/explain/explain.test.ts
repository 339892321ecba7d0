import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TCP, UDP, type DnsProtocol } from '../../src/core/protocol.ts'
import type { Question } from '../../src/explain/explanation.ts'
import { ask, connect, explainOn } from '../support/nodes/explain.ts'
import { mkPolicyNode } from '../support/nodes/policy-node.ts'

/** One rule a line, so that lines distinguish rules. */
const WEB = `
egress:
- { toFQDNs: [ { matchName: cilium.io }, { matchPattern: "*.cilium.io" } ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] }
- { toCIDRSet: [ { cidr: 198.51.100.0/24, except: [ 198.51.100.128/25 ] } ] }
- { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.cilium.io" } ] } } ] }
egressDeny:
- { toCIDR: [ 198.51.100.9/32 ] }
`

type Row = readonly [
  question: Question,
  verdict: 'allow' | 'deny' | 'audit',
  lines: readonly number[],
  selectors: readonly string[],
  nearest: RegExp | null,
  reason: string,
]

const ROWS: readonly Row[] = [
  [connect({ name: 'cilium.io' }), 'allow', [8], ['cilium.io'], null, 'exact name, no address'],
  [
    connect({ name: 'www.cilium.io', address: '203.0.113.5' }),
    'allow',
    [8],
    ['*.cilium.io'],
    null,
    'pattern and address',
  ],
  [
    connect({ name: 'a.b.cilium.io' }),
    'deny',
    [],
    [],
    /\*\.cilium\.io does not match a\.b\.cilium\.io/,
    'one label too many',
  ],
  [
    connect({ name: 'cilium.io' }, '80'),
    'deny',
    [],
    ['cilium.io'],
    /its ports are 443\/TCP, not 80\/TCP/,
    'other port',
  ],
  [
    connect({ name: 'cilium.io' }, '443/17'),
    'deny',
    [],
    ['cilium.io'],
    /not 443\/UDP/,
    'other protocol',
  ],
  [
    connect({ address: '203.0.113.5' }),
    'deny',
    [],
    [],
    /no known answer for cilium\.io had the address 203\.0\.113\.5/,
    'bare address',
  ],
  [
    connect({ address: '198.51.100.1' }, '22'),
    'allow',
    [9],
    ['198.51.100.0/24 except 198.51.100.128/25'],
    null,
    'inside the prefix',
  ],
  [
    connect({ address: '198.51.100.200' }),
    'deny',
    [],
    [],
    /198\.51\.100\.200 is not in 198\.51\.100\.0\/24 except/,
    'inside the exception',
  ],
  [
    connect({ address: '198.51.100.9' }),
    'deny',
    [12],
    ['198.51.100.0/24 except 198.51.100.128/25', '198.51.100.9/32'],
    /but a deny rule beats it/,
    'deny beats allow',
  ],
  [
    connect({ name: 'www.cilium.io', address: '198.51.100.9' }),
    'deny',
    [12],
    ['*.cilium.io', '198.51.100.0/24 except 198.51.100.128/25', '198.51.100.9/32'],
    /but a deny rule beats it/,
    'a name does not lift a deny',
  ],
  [
    connect({ address: '203.0.113.5' }, '53/17'),
    'deny',
    [],
    [],
    /rules\.dns: they permit asking and open nothing/,
    'rules.dns opens nothing',
  ],
  [
    connect({ name: 'www.cilium.io', address: '169.254.169.254' }),
    'deny',
    [],
    [],
    /does not match|no name|not in|known/,
    'guarded address',
  ],
  [ask('www.cilium.io'), 'allow', [10], ['*.cilium.io'], null, 'a rules.dns matches'],
  [ask('cilium.io'), 'deny', [], [], /toFQDNs permits no asking/, 'only toFQDNs names it'],
  [ask('www.example.com'), 'deny', [], [], null, 'nothing near'],
  [
    ask('wwww.a.cilium.io'),
    'deny',
    [],
    [],
    /\*\.cilium\.io, which does not match/,
    'a label too many',
  ],
]

test('explain gives verdict, rules, selectors and the nearest rule', () => {
  const node = mkPolicyNode([WEB])
  for (const [question, verdict, lines, selectors, nearest, reason] of ROWS) {
    const found = explainOn(node, question)
    assert.equal(found.verdict, verdict, reason)
    assert.deepEqual(
      found.rules.map(({ line }) => line),
      lines,
      reason,
    )
    assert.deepEqual(found.selectors, selectors, reason)
    if (nearest === null) assert.equal(found.nearest, null, reason)
    else assert.match(found.nearest?.missing ?? '', nearest, reason)
    assert.deepEqual(found.default, { egress: 'deny', policies: ['policy-0'], audited: [] }, reason)
    for (const rule of found.rules) assert.equal(rule.file, 'policy-0.yaml')
  }
})

test('explain names every rule that says the same, also the one that a flattened entry leaves out', () => {
  const node = mkPolicyNode([
    `egress:\n- { toEntities: [ world ] }\n- { toEntities: [ world-ipv4 ], toPorts: [ { ports: [ { port: "443" } ] } ] }\n- { toCIDR: [ 203.0.113.0/24 ] }`,
  ])
  const { verdict, rules } = explainOn(node, connect({ address: '203.0.113.5' }))
  assert.equal(verdict, 'allow')
  assert.deepEqual(
    rules.map(({ line }) => line),
    [7, 8, 9],
  )
})

test('explain names the default that made the verdict', () => {
  const world = connect({ address: '203.0.113.5' })
  const rows = [
    ['allow', 'allow', /default-egress is allow$/, 'open'],
    ['audit', 'audit', /default-egress is audit$/, 'passes and is reported'],
    ['deny', 'deny', /default-egress is deny$/, 'closed'],
    ['allow-known', 'deny', /default-egress is allow-known$/, 'the world is not known'],
    ['allow-named', 'deny', /default-egress is allow-named$/, 'a bare address was not asked for'],
  ] as const
  for (const [defaultEgress, verdict, words, reason] of rows) {
    const node = mkPolicyNode([], { defaultEgress })
    const found = explainOn(node, world)
    assert.equal(found.verdict, verdict, reason)
    assert.match(found.reason, words, reason)
    assert.deepEqual(found.default, { egress: defaultEgress, policies: [], audited: [] }, reason)
  }
  const known = mkPolicyNode([], { defaultEgress: 'allow-known' })
  assert.equal(explainOn(known, connect({ address: '10.200.0.2' })).verdict, 'allow')
  const named = mkPolicyNode([], { defaultEgress: 'allow-named' })
  assert.equal(explainOn(named, connect({ name: 'any.example' })).verdict, 'allow')
})

test('explain judges a name by the addresses that it is known to have, the hardest first', () => {
  const node = mkPolicyNode([WEB])
  node.learn(node.endpoint('a').id, 'www.cilium.io', ['203.0.113.5', '198.51.100.9'])
  const found = explainOn(node, connect({ name: 'www.cilium.io' }))
  assert.equal(found.verdict, 'deny')
  assert.deepEqual(found.notes, ['203.0.113.5 is allowed'])
  assert.deepEqual(
    found.identities,
    [node.identityOf('203.0.113.5'), node.identityOf('198.51.100.9')].sort((a, b) => a - b),
  )
  const bare = explainOn(node, connect({ address: '203.0.113.5' }))
  assert.deepEqual([bare.verdict, bare.notes], ['allow', ['203.0.113.5 is known by www.cilium.io']])
})

test('explain judges a name without address for IPv4, and says where IPv6 differs', () => {
  const node = mkPolicyNode(['egress: [ { toEntities: [ world-ipv4 ] } ]'])
  const found = explainOn(node, connect({ name: 'example.com' }))
  assert.equal(found.verdict, 'allow')
  assert.deepEqual(found.notes.slice(1), ['IPv6 is denied'])
})

test('explain finds the policy that allows it but selects others', () => {
  const node = mkPolicyNode([
    'endpointSelector: { matchLabels: { app: a } }\negress: [ {} ]',
    'endpointSelector: { matchLabels: { app: b } }\negress: [ { toFQDNs: [ { matchName: cilium.io } ] } ]',
  ])
  const { verdict, nearest } = explainOn(node, connect({ name: 'cilium.io' }))
  assert.equal(verdict, 'deny')
  assert.deepEqual(nearest, {
    policy: 'policy-1',
    file: 'policy-1.yaml',
    line: 6,
    missing: 'its policy does not select this endpoint, but app=b',
  })
})

test('explain asks a server that the endpoint chose', () => {
  const node = mkPolicyNode([
    `egress: [ { toCIDR: [ 192.0.2.53/32 ], toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchName: cilium.io } ] } } ] } ]`,
  ])
  const rows = [
    [
      ask('cilium.io', '192.0.2.53'),
      'allow',
      /a rule permits it/,
      'admitted server, name that matches',
    ],
    [
      ask('ebpf.io', '192.0.2.53'),
      'deny',
      /no rules\.dns for UDP matches/,
      'admitted server, other name',
    ],
    [ask('cilium.io', '192.0.2.54'), 'deny', /no rule admits the server at/, 'other server'],
    [ask('cilium.io', '192.0.2.53', 5353), 'deny', /no rule admits the server at/, 'other port'],
  ] as const
  for (const [question, verdict, words, reason] of rows) {
    const found = explainOn(node, question)
    assert.equal(found.verdict, verdict, reason)
    assert.match(found.reason, words, reason)
  }
})

test('explain decides by the protocol that is asked over, and notes that the other differs', () => {
  const dns = (protocol: string, name: string): string =>
    `{ toPorts: [ { ports: [ { port: "53", protocol: ${protocol} } ], rules: { dns: [ { matchName: ${name} } ] } } ] }`
  const rules = [dns('UDP', 'a.x'), dns('TCP', 'b.x'), dns('ANY', 'c.x')]
  const node = mkPolicyNode([`egress: [ ${rules.join(', ')} ]`])
  const [toTcp, toUdp] = [/is for 53\/UDP, not TCP/, /is for 53\/TCP, not UDP/]
  const rows: readonly (readonly [
    name: string,
    protocol: DnsProtocol,
    verdict: string,
    note: string | undefined,
    nearest: RegExp | undefined,
  ])[] = [
    ['a.x', UDP, 'allow', 'over TCP the verdict is deny', undefined],
    ['a.x', TCP, 'deny', 'over UDP the verdict is allow', toTcp],
    ['b.x', UDP, 'deny', 'over TCP the verdict is allow', toUdp],
    ['b.x', TCP, 'allow', 'over UDP the verdict is deny', undefined],
    ['c.x', UDP, 'allow', undefined, undefined],
    ['c.x', TCP, 'allow', undefined, undefined],
    ['d.x', TCP, 'deny', undefined, undefined],
  ]
  for (const server of [undefined, '192.0.2.53']) {
    for (const [name, protocol, verdict, note, nearest] of rows) {
      const found = explainOn(node, ask(name, server, 53, protocol))
      const what = `${name} over ${protocol} of ${server}`
      assert.equal(found.verdict, verdict, what)
      assert.deepEqual(found.notes, note === undefined ? [] : [note], what)
      if (nearest !== undefined) assert.match(found.nearest?.missing ?? '', nearest, what)
    }
  }
})

test('explain says audit for denied traffic that passes, and why', () => {
  const node = mkPolicyNode(['egress: [ {} ]'])
  const found = explainOn(node, connect({ address: '203.0.113.5' }), 'a', { audited: 'run time' })
  assert.equal(found.verdict, 'audit')
  assert.match(found.reason, /denied.*, but passes: audit by run time$/)
})

test('explain changes nothing: no fact, no identity, no write', () => {
  const node = mkPolicyNode([WEB])
  const before = [node.core.committer.desired, node.core.allocator.takeChanges().fresh.length]
  for (const [question] of ROWS) explainOn(node, question)
  node.core.committer.commit()
  assert.deepEqual(
    [node.core.committer.desired, node.core.allocator.takeChanges().fresh.length],
    before,
  )
  assert.deepEqual(node.differences(), [])
})
