import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UDP } from '../../../src/core/protocol.ts'
import { compilePolicies } from '../../../src/policy/compile/compile.ts'
import {
  DEFAULT_EGRESS,
  defaultEgressOf,
  isDefaultEgress,
  type DefaultEgress,
} from '../../../src/policy/compile/default-egress.ts'
import { mkPolicies } from '../../support/nodes/node.ts'

const KEY = 'namegate.io/default-egress'

test('defaultEgressOf uses the label of any source before the node’s default, and gives no access for an unknown value', () => {
  const rows: readonly (readonly [
    labels: readonly string[],
    node: DefaultEgress,
    egress: DefaultEgress,
    reason: string,
  ])[] = [
    [[], 'allow-named', 'allow-named', 'no label'],
    [['k8s:app=a', `external:${KEY}=deny`], 'allow', 'deny', 'the label'],
    [[`k8s:${KEY}=allow`], 'deny', 'allow', 'the label of another source'],
    [[`k8s:${KEY}=all`], 'allow', 'deny', 'unknown'],
    [[`k8s:${KEY}`], 'allow', 'deny', 'without a value'],
    [[`k8s:${KEY}=allow`, `external:${KEY}=deny`], 'allow', 'deny', 'two that differ'],
    [[`k8s:${KEY}=audit`, `external:${KEY}=audit`], 'allow', 'audit', 'two that agree'],
    [[`k8s:x.${KEY}=allow`], 'deny', 'deny', 'another key'],
    [[`k8s:a=${KEY}`], 'audit', 'audit', 'a value'],
  ]
  for (const [labels, node, egress, reason] of rows) {
    assert.equal(defaultEgressOf(labels, node), egress, reason)
  }
})

test('isDefaultEgress accepts the five values', () => {
  assert.ok(DEFAULT_EGRESS.every(isDefaultEgress))
  assert.deepEqual(['', 'none', 'ALLOW', 'toString'].filter(isDefaultEgress), [])
})

test('compilePolicies turns each default egress into a level, a selector or nothing, and drops it beside default deny', () => {
  const soft = 'enableDefaultDeny: { egress: false }\negressDeny: [ { toCIDR: [ 192.0.2.0/24 ] } ]'
  const hard = 'egress: [ { toCIDR: [ 192.0.2.0/24 ] } ]'
  const rows: readonly (readonly [
    egress: DefaultEgress,
    levels: readonly number[],
    named: boolean,
    asks: string,
  ])[] = [
    ['allow', [0], false, 'every-name'],
    ['audit', [0], false, 'every-name'],
    ['allow-named', [], true, 'every-name'],
    ['allow-known', [11, 12], false, 'every-name'],
    ['deny', [], false, 'every-name'],
  ]
  for (const [defaultEgress, levels, named, asks] of rows) {
    const options = { defaultEgress, withoutDnsRules: 'allow', originOf: () => 1 } as const
    const open = compilePolicies(mkPolicies(soft), options)
    assert.deepEqual([...open.levels.keys()], levels, defaultEgress)
    assert.equal(open.named, named, defaultEgress)
    assert.equal(open.selectors.filter(({ spec }) => spec.kind === 'named').length, named ? 1 : 0)
    assert.equal(open.dns[UDP].kind, asks, defaultEgress)
    const shut = compilePolicies(mkPolicies(hard), options)
    assert.deepEqual([[...shut.levels.keys()], shut.named], [[], false], defaultEgress)
  }
})

test('compilePolicies lets DNS rules limit questions under every default that works as a policy', () => {
  const dns = `enableDefaultDeny: { egress: false }
egress:
  - toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchName: a.x } ] } } ]`
  for (const defaultEgress of DEFAULT_EGRESS) {
    const options = { defaultEgress, withoutDnsRules: 'allow', originOf: () => 1 } as const
    const limited = defaultEgress !== 'allow' && defaultEgress !== 'audit'
    const { kind } = compilePolicies(mkPolicies(dns), options).dns[UDP]
    assert.equal(kind, limited ? 'names' : 'every-name', defaultEgress)
  }
})
