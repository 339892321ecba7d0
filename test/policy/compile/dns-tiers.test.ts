// ClusterNetworkPolicies and questions (docs/spec/semantics 2 "Tiers"): to the configured servers, and to one that the client chose.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UDP } from '../../../src/core/protocol.ts'
import { compileDnsRules, serverRulesOf } from '../../../src/policy/compile/dns-rules.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { mkPolicies } from '../../support/nodes/node.ts'

const DNS =
  'toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*.x" } ] } } ]'
const PORT = 'toPorts: [ { ports: [ { port: "53" } ] } ]'
const PLAIN = `egress: [ { ${DNS} } ]`
const NAMES = 'action: Accept, to: [{ domainNames: ["*.y.z"] }]'
const UDP_53 = 'protocols: [{ udp: { destinationPort: { number: 53 } } }]'
const PODS = 'to: [{ namespaces: {} }]'
const SERVER = `${PODS}, ${UDP_53}`

function mkTier(tier: string, priority: number, ...rules: readonly string[]): Policy {
  const head = 'apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\n'
  const egress = rules.map((rule) => `{ ${rule} }`).join(', ')
  const spec = `spec: { tier: ${tier}, priority: ${priority}, subject: { namespaces: {} }, egress: [${egress}] }`
  const { policies, faults } = loadPolicies(`${head}metadata: { name: p }\n${spec}\n`, 'f')
  assert.deepEqual(faults, [])
  return policies[0]!
}

const admin = (...rules: readonly string[]): Policy => mkTier('Admin', 1, ...rules)
const baseline = (...rules: readonly string[]): Policy => mkTier('Baseline', 1, ...rules)
const plain = (spec: string): Policy => mkPolicies(`endpointSelector: {}\n${spec}`)[0]!
const OPEN = `${PLAIN}\nenableDefaultDeny: { egress: false }`

type Answer = string | readonly string[]
/** `pool`: questions to the configured servers. `server`: questions to a pod that the client chose. */
type Row = readonly [policies: readonly Policy[], pool: Answer, server: Answer, reason: string]

const ROWS: readonly Row[] = [
  [
    [admin(NAMES)],
    'every-name',
    'not-admitted',
    'domainNames restrict nothing, and admit no server',
  ],
  [[plain(PLAIN)], ['*.x'], ['*.x'], 'without tiers'],
  [
    [admin(NAMES), plain(PLAIN)],
    ['*.x', '**.y.z'],
    ['*.x', '**.y.z'],
    'domainNames allow more names',
  ],
  [
    [admin('action: Deny, to: [{ namespaces: {} }]'), plain(PLAIN)],
    ['*.x'],
    'not-admitted',
    'Deny has no names; it refuses only the server',
  ],
  [
    [admin(`action: Accept, ${SERVER}`), plain(PLAIN)],
    'every-name',
    'every-name',
    'Accept of the server is final',
  ],
  [
    [admin(`action: Pass, ${SERVER}`, `action: Accept, ${SERVER}`), plain(PLAIN)],
    ['*.x'],
    ['*.x'],
    'Pass comes first',
  ],
  [
    [
      mkTier('Admin', 2, `action: Deny, ${SERVER}`),
      admin(`action: Accept, ${SERVER}`),
      plain(PLAIN),
    ],
    'every-name',
    'every-name',
    'the lower priority comes first',
  ],
  [
    [admin(`action: Deny, ${SERVER}`), admin(`action: Accept, ${SERVER}`), plain(PLAIN)],
    ['*.x'],
    'not-admitted',
    'deny wins at equal priority',
  ],
  [
    [admin(`action: Accept, ${PODS}`), plain(PLAIN)],
    ['*.x'],
    'every-name',
    'Accept of all ports names no port',
  ],
  [
    [admin(NAMES), plain(`egressDeny: [ { ${PORT} } ]`)],
    'no-name',
    'not-admitted',
    'domainNames admit no server',
  ],
  [
    [admin(`action: Accept, ${SERVER}`), plain(`egressDeny: [ { ${PORT} } ]`)],
    'every-name',
    'every-name',
    'Admin comes before deny rules',
  ],
  [[baseline(NAMES), plain(PLAIN)], ['*.x'], ['*.x'], 'default deny leaves out Baseline'],
  [
    [baseline(`action: Deny, ${SERVER}`), plain(OPEN)],
    ['*.x'],
    ['*.x'],
    'a rule admits the server before Baseline',
  ],
  [[baseline(NAMES), plain(OPEN)], ['*.x', '**.y.z'], ['*.x', '**.y.z'], 'names of Baseline'],
  [
    [baseline(`action: Deny, ${SERVER}`)],
    'every-name',
    'not-admitted',
    'Baseline refuses the server',
  ],
  [
    [baseline(`action: Accept, ${SERVER}`)],
    'every-name',
    'every-name',
    'Baseline admits the server',
  ],
]

for (const [policies, pool, server, reason] of ROWS) {
  test(`compileDnsRules and serverRulesOf: ${reason}`, () => {
    const options = { withoutRules: 'allow', egress: 'deny', protocol: UDP } as const
    const atServer = { ...options, port: 53, isKnown: true, includes: () => true }
    const found = [
      compileDnsRules(policies, policies, options),
      serverRulesOf(policies, policies, atServer),
    ].map((rules) => (rules.kind === 'names' ? rules.patterns.map(({ text }) => text) : rules.kind))
    assert.deepEqual(found, [pool, server])
  })
}
