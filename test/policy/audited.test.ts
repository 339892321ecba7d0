// Audit per policy (docs/spec/semantics 2 "Audit"): what an audited policy denies and allows of questions and packets, alone and beside
// policies in force.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/explain/explain.ts'
import { AUDITED, MAY_ASK, NAME_DENIED } from '../../src/enforcement/dns-verdicts.ts'
import { UDP } from '../../src/core/protocol.ts'
import type { DefaultEgress } from '../../src/policy/compile/default-egress.ts'
import type { Policy } from '../../src/policy/rule.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf, wireOf } from '../support/nodes/node.ts'

type Verdict = 'allow' | 'audit' | 'deny'
const ASKING: ReadonlyMap<number, Verdict> = new Map([
  [MAY_ASK, 'allow'],
  [AUDITED, 'audit'],
  [NAME_DENIED, 'deny'],
])

/** Policies of these specs. Those that begin with `audited` are audited. */
function policiesOf(specs: readonly string[]): readonly Policy[] {
  return mkPolicies(...specs.map((spec) => spec.replace(/^audited /, ''))).map((policy, i) =>
    specs[i]?.startsWith('audited ') === true ? { ...policy, audited: true } : policy,
  )
}

function mkNode(specs: readonly string[], defaultEgress: DefaultEgress = 'allow'): Node {
  const node = new Node({ defaultEgress })
  node.setEndpoints([mkEndpoint('pod', ['10.0.1.5'])])
  node.setPolicies(policiesOf(specs))
  return node
}

function ask(node: Node, name: string): { readonly verdict: string; readonly by: string } {
  const { dnsVerdicts } = node.policies
  const verdict = dnsVerdicts.judge(node.endpoint('pod').id, UDP, wireOf(name), 0)
  const by = node.core.origins.places(dnsVerdicts.deniedBy).map(({ policy }) => policy)
  return { verdict: ASKING.get(verdict) ?? 'unknown', by: by.join(' ') }
}

const DNS_X =
  'toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.x" } ] } } ]'
const DNS_Y = DNS_X.replace('*.x', '*.y')
const PORT_443 = 'toPorts: [ { ports: [ { port: "443" } ] } ]'
const DENY_ASKING = 'egressDeny: [ { toPorts: [ { ports: [ { port: "53" } ] } ] } ]'

const ASK_ROWS: readonly (readonly [
  specs: readonly string[],
  x: string,
  y: string,
  z: string,
  why: string,
])[] = [
  [
    [`audited egress: [ { ${DNS_X} } ]`],
    'allow',
    'audit policy-0',
    'audit policy-0',
    'alone it denies nothing: neither by default deny nor by its DNS rules',
  ],
  [
    [`egress: [ { ${DNS_X} } ]`, `audited egress: [ { ${DNS_Y} } ]`],
    'allow',
    'allow',
    'deny policy-0',
    'what it allows is allowed; what neither allows, the other one denies',
  ],
  [
    [`egress: [ { ${PORT_443} } ]`, `audited egress: [ { ${DNS_X} } ]`],
    'allow',
    'audit policy-1',
    'audit policy-1',
    'default deny without DNS rules can ask anything, as without the audited policy',
  ],
  [
    [`egress: [ { ${DNS_X} } ]`, `audited ${DENY_ASKING}`],
    'audit policy-1',
    'deny policy-0',
    'deny policy-0',
    'its deny rule is reported where another one allows, and nowhere else',
  ],
  [
    [`audited egress: [ { ${DNS_X} } ]\n${DENY_ASKING}`, `egress: [ { ${DNS_Y} } ]`],
    'audit policy-0',
    'audit policy-0',
    'deny policy-1',
    'its deny rule takes nothing from its own rules',
  ],
  [
    [`egress: [ { ${DNS_X} } ]\n${DENY_ASKING}`, `audited egress: [ { ${DNS_Y} } ]`],
    'deny policy-0',
    'deny policy-0',
    'deny policy-0',
    'a deny rule in force wins over all',
  ],
]

for (const [specs, x, y, z, why] of ASK_ROWS) {
  test(`DnsVerdicts.judge: ${why}`, () => {
    const node = mkNode(specs)
    const asked = ['a.x', 'a.y', 'a.z'].map((name) => ask(node, name))
    assert.deepEqual(
      asked.map(({ verdict, by }) => `${verdict} ${by}`.trim()),
      [x, y, z],
    )
  })
}

/** The verdicts about one address inside 198.18.0.0/16 and one outside, both at 443 and 80. */
const CONNECT_ROWS: readonly (readonly [
  specs: readonly string[],
  egress: DefaultEgress,
  expected: string,
  why: string,
])[] = [
  [
    ['audited egress: [ { toCIDR: [ 198.18.0.0/16 ] } ]'],
    'allow',
    'allow allow audit audit',
    'its default deny audits what the default allows',
  ],
  [
    ['audited egress: [ { toCIDR: [ 198.18.0.0/16 ] } ]'],
    'deny',
    'allow allow deny deny',
    'what the default denies stays denied',
  ],
  [
    [
      'audited egress: [ { toCIDR: [ 198.18.0.0/16 ] } ]',
      `egress: [ { toEntities: [ all ], ${PORT_443} } ]`,
    ],
    'allow',
    'allow allow allow deny',
    'beside default deny of another policy its own has no effect',
  ],
  [
    [
      'audited egressDeny: [ { toCIDR: [ 198.18.0.0/16 ] } ]',
      `egress: [ { toEntities: [ all ], ${PORT_443} } ]`,
    ],
    'allow',
    'audit deny allow deny',
    'its deny rule at an address is reported inside what is allowed for all, and opens nothing else',
  ],
  [
    [
      `audited egressDeny: [ { toEntities: [ all ], ${PORT_443} } ]`,
      'egress: [ { toCIDR: [ 198.18.0.0/16 ] } ]',
    ],
    'allow',
    'audit allow deny deny',
    'its deny rule for all is reported inside what is allowed for an address',
  ],
  [
    [
      'audited egressDeny: [ { toCIDR: [ 198.18.0.0/16 ] } ]',
      `egress: [ { toEntities: [ all ] } ]\negressDeny: [ { toCIDR: [ 198.18.0.0/24 ], ${PORT_443} } ]`,
    ],
    'allow',
    'deny audit allow allow',
    'a deny rule in force wins where both apply',
  ],
  [
    [
      'audited egressDeny: [ { toCIDR: [ 198.18.0.0/16 ], toPorts: [ { ports: [ { port: "1", endPort: 500 } ] } ] } ]',
      'egress: [ { toCIDR: [ 198.18.0.0/16 ], toPorts: [ { ports: [ { port: "100", endPort: 9000 } ] } ] } ]',
    ],
    'allow',
    'audit deny deny deny',
    'overlapping ranges: reported in both, allowed beyond, denied before',
  ],
]

for (const [specs, egress, expected, why] of CONNECT_ROWS) {
  test(`explain: ${why}, default-egress ${egress}`, () => {
    const node = mkNode(specs, egress)
    const { id, labels, hook, addresses } = node.endpoint('pod')
    const verdicts = ['198.18.0.9', '203.0.113.5'].flatMap((address) =>
      [443, 80].map((port) => {
        const found = explain(
          node,
          { id, labels, hook, addresses, audited: undefined },
          { kind: 'connect', address: prefixOf(address), protocol: 6, port },
        )
        assert.ok(found !== undefined)
        assert.equal(
          node.verdict('pod', address, port),
          found.verdict,
          'the datapath has the same verdict',
        )
        return found.verdict
      }),
    )
    assert.equal(verdicts.join(' '), expected)
  })
}

test('explain names the audited rule that denies, or the policies that would turn default deny on', () => {
  const node = mkNode([
    'audited egress: [ { toCIDR: [ 198.18.0.0/16 ] } ]\negressDeny: [ { toCIDR: [ 198.18.1.0/24 ] } ]',
  ])
  const { id, labels, hook, addresses } = node.endpoint('pod')
  const at = (address: string) =>
    explain(
      node,
      { id, labels, hook, addresses, audited: undefined },
      { kind: 'connect', address: prefixOf(address), protocol: 6, port: 443 },
    )
  const byRule = at('198.18.1.9')
  assert.match(
    byRule?.reason ?? '',
    /^443\/TCP passes, but an audited policy has a rule that denies it$/,
  )
  assert.deepEqual(
    byRule?.rules.map(({ policy, action }) => [policy, action]),
    [['policy-0', 'deny']],
  )
  const byDefault = at('198.19.0.5')
  assert.match(
    byDefault?.reason ?? '',
    /no rule allows it and an audited policy would turn default deny on$/,
  )
  assert.deepEqual(byDefault?.default, { egress: 'allow', policies: [], audited: ['policy-0'] })
  assert.equal(
    byDefault?.nearest?.policy,
    'policy-0',
    'the policy to complete before it is enforced',
  )
})
