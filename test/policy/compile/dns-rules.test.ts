// Can this endpoint ask this name (docs/spec/semantics 2 "DNS"), in explicit mode: one row for each sentence.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TCP, UDP, type DnsProtocol } from '../../../src/core/protocol.ts'
import { compileDnsRules } from '../../../src/policy/compile/dns-rules.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { mkPolicies } from '../../support/nodes/node.ts'

const DNS =
  'toPorts: [ { ports: [ { port: "53", protocol: ANY } ], rules: { dns: [ { matchPattern: "*.x" } ] } } ]'
const PORT_53 = 'toPorts: [ { ports: [ { port: "53", protocol: UDP } ] } ]'
const PORT_443 = 'toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ]'
const EVERY_PORT = 'toPorts: [ { ports: [ { port: "0", protocol: ANY } ] } ]'

type Expected = 'every-name' | 'no-name' | readonly string[]

const ROWS: readonly (readonly [spec: string, expected: Expected, reason: string])[] = [
  ['egress: [ {} ]', 'every-name', 'no rule has rules.dns'],
  [`egress: [ { ${PORT_443} } ]`, 'every-name', 'no rule has rules.dns, whatever the ports'],
  [`egress: [ { ${DNS} } ]`, ['*.x'], 'rules.dns that matches'],
  [`egress: [ { ${DNS} }, {} ]`, ['*.x'], 'the empty rule allows nothing'],
  [
    `egress: [ { ${DNS} }, { toEntities: [ world ] } ]`,
    'every-name',
    'a rule without rules.dns for the world',
  ],
  [
    `egress: [ { ${DNS} }, { toEntities: [ all ], ${EVERY_PORT} } ]`,
    'every-name',
    'or for all, ports covered',
  ],
  [
    `egress: [ { ${DNS} }, { toEntities: [ world ], ${PORT_443} } ]`,
    ['*.x'],
    'port 53 is not covered',
  ],
  [
    `egress: [ { ${DNS} }, { toEntities: [ cluster ] } ]`,
    ['*.x'],
    'cluster without the port does not count',
  ],
  [`egress: [ { ${DNS} }, { ${PORT_53} } ]`, 'every-name', 'no peer field and the port'],
  [`egress: [ { ${DNS} }, { ${EVERY_PORT} } ]`, 'every-name', 'no peer field and every port'],
  [
    `egress: [ { ${DNS} }, { toCIDR: [ 10.0.0.0/8 ] } ]`,
    ['*.x'],
    'toCIDR without the port does not count',
  ],
  [
    `egress: [ { ${DNS} }, { toCIDR: [ 10.0.0.0/8 ], ${PORT_53} } ]`,
    'every-name',
    'toCIDR that names the port counts',
  ],
  [
    `egress: [ { ${DNS} }, { toCIDR: [ 10.0.0.0/8 ], ${EVERY_PORT} } ]`,
    ['*.x'],
    'every port is not naming it',
  ],
  [
    `egress: [ { ${DNS} }, { toFQDNs: [ { matchName: ns.y } ], ${PORT_53} } ]`,
    ['*.x'],
    'toFQDNs never permits asking',
  ],
  [
    `egress: [ { ${DNS} }, { toFQDNs: [ { matchName: ns.y } ] } ]`,
    ['*.x'],
    'toFQDNs never permits asking',
  ],
  [
    `egress: [ { toCIDR: [ 10.0.0.53/32 ], ${DNS} } ]`,
    ['*.x'],
    'peers are not compared in explicit mode',
  ],
  [
    `egress: [ { toFQDNs: [ { matchName: ns.y } ], ${DNS} } ]`,
    [],
    'toFQDNs with rules.dns permits nothing either',
  ],
  [
    `egress: [ { toCIDR: [], ${DNS} } ]`,
    [],
    'a peer field that is present and empty selects nothing',
  ],
  [`egress: [ { toEntities: [ none ], ${DNS} } ]`, [], 'the entity none selects nothing'],
  [
    `egress: [ { ${DNS} }, { toCIDR: [], ${PORT_53} } ]`,
    ['*.x'],
    'nor does an empty peer field without rules.dns',
  ],
  [
    `egress: [ { ${DNS} } ]\nenableDefaultDeny: { egress: false }`,
    'every-name',
    'nothing is denied without default deny',
  ],
  [`egress: [ { ${DNS} } ]\negressDeny: [ { ${PORT_53} } ]`, 'no-name', 'deny beats allow'],
  [
    `egress: [ { ${DNS} } ]\negressDeny: [ { toEntities: [ all ] } ]`,
    'no-name',
    'deny of everything',
  ],
  [`egress: [ { ${DNS} } ]\negressDeny: [ { ${PORT_443} } ]`, ['*.x'], 'a deny of another port'],
  [
    `egress: [ { ${DNS} } ]\negressDeny: [ { toCIDR: [ 10.0.0.0/8 ] } ]`,
    ['*.x'],
    'a deny of some peers',
  ],
]

function decide(
  policies: readonly Policy[],
  withoutRules: 'allow' | 'deny' = 'allow',
  protocol: DnsProtocol = UDP,
): Expected {
  const egress = policies.some((policy) => policy.defaultDeny) ? 'deny' : 'allow'
  const rules = compileDnsRules(policies, policies, { withoutRules, egress, protocol })
  return rules.kind === 'names' ? rules.patterns.map(({ text }) => text) : rules.kind
}

for (const [spec, expected, reason] of ROWS) {
  test(`compileDnsRules: ${reason}: ${spec.replaceAll('\n', ' ')}`, () => {
    assert.deepEqual(decide(mkPolicies(spec)), expected)
  })
}

test('compileDnsRules unites the patterns of several policies', () => {
  const other = `egress: [ { ${DNS.replace('*.x', 'a.y')} } ]`
  assert.deepEqual(decide(mkPolicies(`egress: [ { ${DNS} } ]`, other)), ['*.x', 'a.y'])
})

test('compileDnsRules with without-rules deny: only rules that name the port allow asking', () => {
  const rows: readonly (readonly [spec: string | undefined, expected: Expected, reason: string])[] =
    [
      [undefined, 'no-name', 'no policy at all'],
      ['egress: [ { toEntities: [ cluster ] } ]', 'no-name', 'no rule for the port'],
      [`egress: [ { ${PORT_53} } ]`, 'every-name', 'a rule without rules.dns that names the port'],
      ['egress: [ { toEntities: [ world ] } ]', 'every-name', 'a rule for the world'],
      [`egress: [ { ${DNS} } ]`, ['*.x'], 'rules.dns'],
    ]
  for (const [spec, expected, reason] of rows) {
    assert.deepEqual(decide(spec === undefined ? [] : mkPolicies(spec), 'deny'), expected, reason)
  }
})

const over = (protocol: string, rest: string): string =>
  `toPorts: [ { ports: [ { port: "53"${protocol} } ]${rest} } ]`
const X = ', rules: { dns: [ { matchPattern: "*.x" } ] }'
const UDP_ONLY = over(', protocol: UDP', X)
const TCP_ONLY = over(', protocol: TCP', X)

const BOTH: readonly DnsProtocol[] = [UDP, TCP]

const BY_PROTOCOL: readonly (readonly [
  spec: string,
  overUdp: Expected,
  overTcp: Expected,
  reason: string,
])[] = [
  [`egress: [ { ${UDP_ONLY} } ]`, ['*.x'], [], 'an entry for UDP allows nothing over TCP'],
  [`egress: [ { ${TCP_ONLY} } ]`, [], ['*.x'], 'an entry for TCP allows nothing over UDP'],
  [`egress: [ { ${over(', protocol: ANY', X)} } ]`, ['*.x'], ['*.x'], 'ANY is both'],
  [`egress: [ { ${over('', X)} } ]`, ['*.x'], ['*.x'], 'no protocol is both'],
  [
    `egress: [ { ${UDP_ONLY} }, { ${over(', protocol: TCP', X).replace('*.x', '*')} } ]`,
    ['*.x'],
    ['*'],
    'each has its own names',
  ],
  [
    `egress: [ { ${UDP_ONLY} }, { ${over(', protocol: TCP', '')} } ]`,
    ['*.x'],
    'every-name',
    'a rule without rules.dns applies to its protocol',
  ],
  [
    `egress: [ { ${UDP_ONLY} }, { toCIDR: [ 10.0.0.0/8 ], ${over(', protocol: TCP', '')} } ]`,
    ['*.x'],
    'every-name',
    'the same for one that counts because it names the port',
  ],
  [
    `egress: [ { ${over('', X)} } ]\negressDeny: [ { ${over(', protocol: TCP', '')} } ]`,
    ['*.x'],
    'no-name',
    'a deny rule applies to its protocol',
  ],
  [
    `egress: [ { ${UDP_ONLY} }, { toEntities: [ world ] } ]`,
    'every-name',
    'every-name',
    'a rule without ports applies to every protocol',
  ],
]

for (const [spec, overUdp, overTcp, reason] of BY_PROTOCOL) {
  test(`compileDnsRules: ${reason}: ${spec.replaceAll('\n', ' ')}`, () => {
    const policies = mkPolicies(spec)
    const decided = BOTH.map((protocol) => decide(policies, 'allow', protocol))
    assert.deepEqual(decided, [overUdp, overTcp])
  })
}

test('compileDnsRules with without-rules deny: only a rule for the protocol allows asking over it', () => {
  const policies = mkPolicies(`egress: [ { ${over(', protocol: TCP', '')} } ]`)
  const decided = BOTH.map((protocol) => decide(policies, 'deny', protocol))
  assert.deepEqual(decided, ['no-name', 'every-name'])
})
