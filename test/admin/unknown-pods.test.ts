// The policies that the status names when this node does not know the pods of other nodes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterView } from '../../src/admin/state.ts'
import { statusView } from '../../src/admin/views/status.ts'
import { policiesOfUnknownPods } from '../../src/admin/views/unknown-pods.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const WHY = 'the pods are far away'

const PEERS: ClusterView['collections'][number] = {
  kind: 'Peer',
  state: 'watching',
  reason: '',
  objects: 1,
  faulty: 0,
  held: 0,
  age: 0,
}

function clusterOf(
  reason: string,
  except: readonly string[] = [],
  collections: ClusterView['collections'] = [],
): ClusterView {
  return {
    server: 'https://192.0.2.1',
    version: 'v1.36.4',
    collections,
    leftOut: new Map(),
    unknownPods: { reason, except },
    warnings: [],
    events: undefined,
    accept: () => 0,
    place: () => {},
    displace: () => {},
    whyNot: () => undefined,
  }
}

function nodeWith(...policies: readonly string[]): Node {
  const node = new Node({ defaultEgress: 'deny' })
  node.recorder.hook = { kind: 'attached' }
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies(mkPolicies(...policies))
  return node
}

const DB = 'toEndpoints: [{ matchLabels: { app: db } }]'
const NAMES = 'rules: { dns: [{ matchPattern: "*" }] }'
const DNS_PORT = 'ports: [{ port: "53", protocol: UDP }]'
const ROWS: readonly (readonly [why: string, rules: string, allows: boolean, denies: boolean])[] = [
  ['labels', `egress: [{ ${DB} }]`, true, false],
  ['denied labels', `egressDeny: [{ ${DB} }]`, false, true],
  ['both', `egress: [{ ${DB} }]\negressDeny: [{ ${DB} }]`, true, true],
  ['the pods are of the cluster', 'egress: [{ toEntities: [cluster] }]', true, false],
  ['all includes every address', 'egress: [{ toEntities: [all] }]', false, false],
  ['an address', 'egress: [{ toCIDR: [10.0.0.0/8] }]', false, false],
  ['a name', 'egress: [{ toFQDNs: [{ matchName: a.test }] }]', false, false],
  ['any peer', `egress: [{ toPorts: [{ ${DNS_PORT} }] }]`, false, false],
  [
    'a label of a resource, which no pod has',
    'egress: [{ toEndpoints: [{ matchLabels: { "external:app": db } }] }]',
    false,
    false,
  ],
  [
    'pods have no such label, so the selector selects them',
    'egress: [{ toEndpoints: [{ matchExpressions: [{ key: "external:app", operator: DoesNotExist }] }] }]',
    true,
    false,
  ],
  ['only names', `egress: [{ ${DB}, toPorts: [{ ${DNS_PORT}, ${NAMES} }] }]`, false, false],
  ['a port of pods', `egress: [{ ${DB}, toPorts: [{ ${DNS_PORT} }] }]`, true, false],
]
for (const [why, rules, allows, denies] of ROWS) {
  test(`policiesOfUnknownPods looks for rules that can select pods: ${why}`, () => {
    const node = nodeWith(rules)
    const found = policiesOfUnknownPods(mkAdmin(node, { cluster: clusterOf(WHY) }).state)
    const expected = allows || denies ? [{ policy: 'policy-0', allows, denies }] : []
    assert.deepEqual(found, expected)
  })
}

test('policiesOfUnknownPods leaves out rules that select pods of known namespaces only', () => {
  const key = 'k8s:io.kubernetes.pod.namespace'
  const labels = (value: string): string =>
    `egress: [{ toEndpoints: [{ matchLabels: { "${key}": ${value} } }] }]`
  const one = (operator: string, values: string): string =>
    `egress: [{ toEndpoints: [{ matchExpressions: [{ key: "${key}", operator: ${operator}, values: [${values}] }] }] }]`
  const node = nodeWith(
    labels('shop'),
    labels('far'),
    one('In', 'shop, lab'),
    one('In', 'shop, far'),
    one('NotIn', 'shop'),
  )
  const { state } = mkAdmin(node, { cluster: clusterOf(WHY, ['shop', 'lab']) })
  assert.deepEqual(
    policiesOfUnknownPods(state).map(({ policy }) => policy),
    ['policy-1', 'policy-3', 'policy-4'],
  )
})

test('statusView names the policies whose rules do not hold for unknown pods', () => {
  const allowing = Array.from({ length: 6 }, () => `egress: [{ ${DB} }]`)
  const node = nodeWith(`egressDeny: [{ ${DB} }]`, ...allowing)
  const { warnings, kubernetes } = statusView(mkAdmin(node, { cluster: clusterOf(WHY) }).state)
  assert.deepEqual(warnings, [
    `${WHY}: deny rules of policy-0 do not deny them`,
    `${WHY}: allow rules of policy-1, policy-2, policy-3, policy-4 and 2 more do not allow them`,
  ])
  assert.equal(kubernetes?.unknownPods.reason, WHY)
  assert.equal(kubernetes.unknownPods.policies.length, 7)
})

test('statusView names no policy when the pods are known, or without a cluster', () => {
  const node = nodeWith(`egress: [{ ${DB} }]`)
  for (const cluster of [clusterOf(''), undefined]) {
    assert.deepEqual(statusView(mkAdmin(node, { cluster }).state).warnings, [])
  }
})

const PORT = 'toPorts: [{ ports: [{ port: web, protocol: TCP }] }]'
const BY_NAME: readonly (readonly [why: string, rules: string, warning: string])[] = [
  ['labels of pods', `egress: [{ ${DB}, ${PORT} }]`, 'allow'],
  ['denied labels of pods', `egressDeny: [{ ${DB}, ${PORT} }]`, 'deny'],
  ['any peer', `egressDeny: [{ ${PORT} }]`, 'deny'],
  ['all has the pods', `egress: [{ toEntities: [all], ${PORT} }]`, 'allow'],
  ['the cluster has the pods', `egress: [{ toEntities: [cluster], ${PORT} }]`, 'allow'],
  ['an address is no pod', `egress: [{ toCIDR: [10.0.0.0/8], ${PORT} }]`, ''],
  ['the world has no pod', `egress: [{ toEntities: [world], ${PORT} }]`, ''],
  ['a number needs no name', `egress: [{ ${DB}, toPorts: [{ ${DNS_PORT} }] }]`, ''],
]
for (const [why, rules, action] of BY_NAME) {
  test(`statusView names policies with port names for pods of other nodes: ${why}`, () => {
    const node = nodeWith(rules)
    const found = (collections: ClusterView['collections']): readonly string[] =>
      statusView(mkAdmin(node, { cluster: clusterOf('', [], collections) }).state).warnings.filter(
        (each) => each.includes('port names'),
      )
    const start = 'this node does not know the port names of pods of other nodes'
    const end = 'rules of policy-0 use the numbers that the names have here'
    assert.deepEqual(found([PEERS]), action === '' ? [] : [`${start}: ${action} ${end}`])
    assert.deepEqual(found([]), [], 'without peers, no such pod is known')
  })
}
