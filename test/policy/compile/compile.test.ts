import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVERYTHING, SCTP, TCP, UDP } from '../../../src/core/protocol.ts'
import { ANY_IDENTITY } from '../../../src/identity/reserved.ts'
import { compilePolicies, type CompileOptions } from '../../../src/policy/compile/compile.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { mkPolicies } from '../../support/nodes/node.ts'

function compile(
  policies: readonly Policy[],
  defaultEgress: CompileOptions['defaultEgress'] = 'deny',
) {
  const rules = policies.flatMap((policy) => policy.rules)
  return compilePolicies(policies, {
    defaultEgress,
    withoutDnsRules: 'allow',
    originOf: (_, rule) => (rule === undefined ? 1000 : 1 + rules.indexOf(rule)),
  })
}

const ALL = { range: EVERYTHING }

test('compilePolicies puts each entity at the numbers of its classes', () => {
  const rows: readonly (readonly [entity: string, levels: readonly number[]])[] = [
    ['host', [1]],
    ['cluster', [1, 11, 12]],
    ['world', [9, 10]],
    ['world-ipv4', [9]],
    ['world-ipv6', [10]],
    ['all', [0]],
    ['none', []],
  ]
  for (const [entity, levels] of rows) {
    const compiled = compile(mkPolicies(`egress: [ { toEntities: [ ${entity} ] } ]`))
    assert.deepEqual([...compiled.levels.keys()], levels, entity)
    for (const coverages of compiled.levels.values()) {
      assert.deepEqual(coverages, [{ action: 'allow', ...ALL, origin: 1 }])
    }
  }
})

test('compilePolicies keeps names and prefixes as selectors with the ports of their rule', () => {
  const compiled = compile(
    mkPolicies(`
egress:
- toFQDNs: [ { matchName: a.x }, { matchPattern: "*.x" } ]
  toPorts: [ { ports: [ { port: "443", protocol: TCP }, { port: "80", endPort: 90, protocol: UDP } ] } ]
egressDeny:
- toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.1.0.0/16 ] } ]
`),
  )
  const ports = [
    { action: 'allow', range: { protocol: TCP, low: 443, high: 443 }, origin: 1 },
    { action: 'allow', range: { protocol: UDP, low: 80, high: 90 }, origin: 1 },
  ]
  const kinds = compiled.selectors.map(({ spec }) => spec.kind)
  assert.deepEqual(kinds, ['fqdn', 'fqdn', 'cidr'])
  assert.deepEqual(
    compiled.selectors.map(({ coverages }) => coverages),
    [ports, ports, [{ action: 'deny', ...ALL, origin: 2 }]],
  )
  assert.equal(compiled.levels.size, 0)
})

test('compilePolicies: no peer field with ports means any peer; the empty rule and DNS rules open nothing', () => {
  const rows: readonly (readonly [spec: string, levels: number, reason: string])[] = [
    ['egress: [ { toPorts: [ { ports: [ { port: "9", protocol: SCTP } ] } ] } ]', 1, 'any peer'],
    ['egress: [ {} ]', 0, 'the empty rule'],
    [
      'egress: [ { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*" } ] } } ] } ]',
      0,
      'DNS rules',
    ],
    ['egress: [ { toCIDR: [] } ]', 0, 'an empty peer field'],
  ]
  for (const [spec, levels, reason] of rows) {
    const compiled = compile(mkPolicies(spec))
    assert.equal(compiled.levels.size, levels, reason)
    assert.deepEqual([compiled.selectors, compiled.defaultDeny], [[], true], reason)
  }
  const { levels } = compile(mkPolicies(rows[0]?.[0] ?? ''))
  assert.deepEqual(
    [...levels],
    [[0, [{ action: 'allow', range: { protocol: SCTP, low: 9, high: 9 }, origin: 1 }]]],
  )
})

test('compilePolicies adds the default at any peer unless a policy turns default deny on', () => {
  const soft = 'egress: [ { toEntities: [ host ] } ]\nenableDefaultDeny: { egress: false }'
  const rows: readonly (readonly [
    specs: readonly string[],
    egress: 'allow' | 'audit' | 'deny',
    action: string | undefined,
  ])[] = [
    [[], 'allow', 'allow'],
    [[], 'audit', 'audit'],
    [[], 'deny', undefined],
    [[soft], 'allow', 'allow'],
    [[soft], 'deny', undefined],
    [[soft, 'egress: [ {} ]'], 'allow', undefined],
    [['egressDeny: [ { toEntities: [ host ] } ]'], 'allow', undefined],
    [['enableDefaultDeny: { egress: true }'], 'audit', undefined],
  ]
  for (const [specs, egress, action] of rows) {
    const { levels } = compile(mkPolicies(...specs), egress)
    assert.equal(
      levels.get(ANY_IDENTITY)?.at(-1)?.action,
      action,
      `${specs.join(' and ')}, ${egress}`,
    )
  }
})
