import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LintCode } from '../../src/lint/finding.ts'
import { lintText, mkFile } from '../support/nodes/lint.ts'

test('lint reports peers that match everything and do not show it', () => {
  const rows: readonly (readonly [egress: string, codes: readonly LintCode[], reason: string])[] = [
    ['toCIDR: [ 0.0.0.0/0 ]', ['allows-all'], 'every address'],
    ['toCIDR: [ "::/0", 10.0.0.0/8 ]', ['allows-all'], 'of one family'],
    ['toCIDRSet: [ { cidr: 0.0.0.0/0, except: [ 10.0.0.0/8 ] } ]', [], 'all but the exceptions'],
    ['toCIDR: [ 0.0.0.0/1 ]', [], 'half of them'],
    ['toEntities: [ world ]', [], 'said in a word'],
    ['toEndpoints: [ {} ]', ['allows-all'], 'every workload'],
    ['toEndpoints: [ { matchExpressions: [ { key: a, operator: Exists } ] } ]', [], 'some'],
    [
      'toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchPattern: "*" } ] } } ]',
      [],
      'asking any name opens no connection',
    ],
  ]
  for (const [egress, codes, reason] of rows) {
    const spec = `{ endpointSelector: {}, egress: [ { ${egress} } ] }`
    const text = mkFile(spec).replace('CiliumNetworkPolicy', 'CiliumClusterwideNetworkPolicy')
    const found = lintText(text.replace(', namespace: prod', '')).map((each) => each.split(' ')[1])
    assert.deepEqual(found, codes, reason)
  }
  const own = mkFile('{ endpointSelector: {}, egress: [ { toEndpoints: [ {} ] } ] }')
  assert.deepEqual(lintText(own), [], "of the policy's own namespace")
  const deny = mkFile('{ endpointSelector: {}, egressDeny: [ { toCIDR: [ 0.0.0.0/0 ] } ] }')
  assert.deepEqual(lintText(deny), [], 'a deny rule opens nothing')
})

test('lint reports equal priorities in one tier with different actions', () => {
  const policy = (name: string, tier: string, priority: number, action: string): string =>
    [
      'apiVersion: policy.networking.k8s.io/v1alpha2',
      'kind: ClusterNetworkPolicy',
      `metadata: { name: ${name} }`,
      `spec: { tier: ${tier}, priority: ${priority}, subject: { namespaces: {} }, egress: [{ action: ${action}, to: [{ namespaces: {} }] }] }`,
    ].join('\n')
  const first = policy('a', 'Admin', 5, 'Accept')
  const rows: readonly (readonly [second: string, found: number, reason: string])[] = [
    [policy('b', 'Admin', 5, 'Deny'), 1, 'which of them decides is open'],
    [policy('b', 'Admin', 5, 'Accept'), 0, 'either decides alike'],
    [policy('b', 'Admin', 6, 'Deny'), 0, 'the lower number decides'],
    [policy('b', 'Baseline', 5, 'Deny'), 0, 'another tier'],
  ]
  for (const [second, count, reason] of rows) {
    const found = lintText(`${first}\n---\n${second}\n`).map((each) => each.split(' ')[1])
    assert.deepEqual(found, Array<LintCode>(count).fill('same-priority'), reason)
  }
})

test('lint reports names that can be asked only over UDP or only over TCP', () => {
  const entry = (protocol: string, names: string): string =>
    `{ toPorts: [ { ports: [ { port: "53"${protocol} } ], rules: { dns: [ ${names} ] } } ] }`
  const [overUdp, overTcp] = [', protocol: UDP', ', protocol: TCP']
  const [name, below] = ['{ matchName: a.x }', '{ matchPattern: "*.x" }']
  const rows: readonly (readonly [rules: readonly string[], found: number, reason: string])[] = [
    [[entry(overUdp, name)], 1, 'answers that are too long for UDP are refused'],
    [[entry(overTcp, name)], 1, 'a resolver begins with UDP'],
    [[entry(', protocol: ANY', name)], 0, 'both'],
    [[entry('', name)], 0, 'no protocol is both'],
    [[entry('}, { port: "53", protocol: UDP', name)], 0, 'both, one of them written'],
    [[entry(overUdp, name), entry(overTcp, name)], 0, 'two rules'],
    [[entry(overUdp, name), entry(overTcp, below)], 1, 'the wider one is for TCP alone'],
    [[entry(overUdp, below), entry(overTcp, name)], 1, 'the wider one is for UDP alone'],
    [[entry(overUdp, name), entry(overTcp, '{ matchName: b.x }')], 2, 'neither is for both'],
    [
      [entry(overUdp, name), '{ toPorts: [ { ports: [ { port: "53", protocol: TCP } ] } ] }'],
      0,
      'every name over TCP',
    ],
  ]
  for (const [rules, count, reason] of rows) {
    const text = mkFile(`{ endpointSelector: {}, egress: [ ${rules.join(', ')} ] }`)
    const found = lintText(text).map((each) => each.split(' ')[1])
    assert.deepEqual(found, Array<LintCode>(count).fill('one-transport'), reason)
  }
})

test('lint reports deny rules that select none of the endpoints given', () => {
  const namespace = 'k8s:io.kubernetes.pod.namespace=prod'
  const endpoints = [
    ['k8s:app=db', namespace],
    ['k8s:app=far', 'k8s:io.kubernetes.pod.namespace=other'],
  ]
  const rows: readonly (readonly [peers: string, found: number, reason: string])[] = [
    ['toEndpoints: [ { matchLabels: { app: db } } ]', 0, 'an endpoint has it'],
    ['toEndpoints: [ { matchLabels: { app: dp } } ]', 1, 'none has it'],
    [
      'toEndpoints: [ { matchLabels: { app: db } }, { matchLabels: { app: dp } } ]',
      1,
      'one of two',
    ],
    ['toEndpoints: [ { matchLabels: { app: far } } ]', 1, 'only one of another namespace has it'],
    [
      'toEndpoints: [ { matchLabels: { app: far, "k8s:io.kubernetes.pod.namespace": other } } ]',
      0,
      'which it may name',
    ],
    ['toCIDR: [ 192.0.2.0/24 ]', 0, 'addresses outside'],
  ]
  for (const [peers, count, reason] of rows) {
    const rule = (key: string): string =>
      mkFile(`{ endpointSelector: {}, ${key}: [ { ${peers} } ] }`)
    const found = lintText(rule('egressDeny'), { endpoints }).map((each) => each.split(' ')[1])
    assert.deepEqual(found, Array<LintCode>(count).fill('selects-nothing'), reason)
    assert.deepEqual(lintText(rule('egress'), { endpoints }), [], 'an allow rule opens nothing')
    assert.deepEqual(lintText(rule('egressDeny')), [], 'endpoints are not known')
  }
})
