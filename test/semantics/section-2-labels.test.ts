// docs/spec/semantics 2 and 3: the meaning of labels of endpoints and resources in policies, and the config keys for it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { peerAt } from '../../src/explain/peer.ts'
import { ResourceControl } from '../../src/enforcement/resource-control.ts'
import { IdentityLabels } from '../../src/policy/identity-labels.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'
import { PortResolver, portNamesOf } from '../../src/policy/compile/named-ports.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf, type NodeOptions } from '../support/nodes/node.ts'

const NODE = '192.0.2.9'

/** Endpoint a, two copies of web, and a resource around a name's address. */
function mkNode(spec: string, options: NodeOptions = {}): Node {
  const node = new Node({ nodeAddresses: [NODE], defaultEgress: 'deny', ...options })
  const addresses = [prefixOf('10.9.0.0/24')]
  new ResourceControl(node).apply([{ name: 'lake', addresses, labels: ['external:app=lake'] }])
  node.setEndpoints([
    mkEndpoint('a', ['10.200.0.1'], ['k8s:app=a', 'k8s:pod-template-hash=1']),
    mkEndpoint('w1', ['10.200.0.2'], ['k8s:app=web', 'k8s:pod-template-hash=2']),
    mkEndpoint('w2', ['10.200.0.3'], ['k8s:app=web', 'k8s:pod-template-hash=3']),
  ])
  node.setPolicies(mkPolicies(spec))
  return node
}

function verdicts(node: Node, ...peers: readonly string[]): string {
  return peers.map((peer) => node.verdict('a', peer)).join(' ')
}

test('toEndpoints reaches external resources, and a name inside one that inherits its labels', () => {
  const node = mkNode('egress: [ { toEndpoints: [ { matchLabels: { app: lake } } ] } ]')
  node.learn(node.endpoint('a').id, 'db.lake.example', ['10.9.0.7', '203.0.113.7'])
  assert.equal(
    verdicts(node, '10.9.0.1', '10.9.0.7', '203.0.113.7', '10.200.0.2'),
    'allow allow deny deny',
  )
})

test('toEndpoints with a negative condition selects neither the world nor the node', () => {
  const node = mkNode(
    'egress: [ { toEndpoints: [ { matchExpressions: [ { key: app, operator: NotIn, values: [ web ] } ] } ] } ]',
  )
  assert.equal(
    verdicts(node, '10.9.0.1', '10.200.0.2', '203.0.113.7', NODE),
    'allow deny deny deny',
  )
})

test('toEndpoints follows labels that change, and denies by label beside an entity', () => {
  const node = mkNode(
    'egress: [ { toEntities: [ cluster ] } ]\negressDeny: [ { toEndpoints: [ { matchLabels: { app: web } } ] } ]',
  )
  assert.equal(verdicts(node, '10.200.0.2', '10.9.0.1'), 'deny allow')
  node.setEndpoints([
    mkEndpoint('a', ['10.200.0.1'], ['k8s:app=a']),
    mkEndpoint('w1', ['10.200.0.2'], ['k8s:app=other']),
  ])
  assert.equal(verdicts(node, '10.200.0.2'), 'allow')
  assert.deepEqual(node.differences(), [])
})

test('policies.cidr-matches-endpoints makes CIDR rules select endpoints, resources and the node', () => {
  const spec =
    'egress: [ { toCIDR: [ 10.0.0.0/8, 192.0.2.0/24 ] } ]\negressDeny: [ { toCIDR: [ 10.200.0.3/32 ] } ]'
  const peers = ['10.200.0.2', '10.200.0.3', '10.9.0.1', NODE, '10.1.1.1']
  assert.equal(verdicts(mkNode(spec), ...peers), 'deny deny deny deny allow')
  const node = mkNode(spec, { cidrMatchesEndpoints: true })
  assert.equal(verdicts(node, ...peers), 'allow deny allow allow allow')
  const host = peerAt(node.core, node.endpoint('a').id, 4, prefixOf(NODE), undefined)
  assert.deepEqual(
    [host.identity, host.addressClass, host.selectedBy.map(({ text }) => text)],
    [node.identityOf(NODE), 1, ['192.0.2.0/24']],
    'explain decides the same',
  )
  assert.deepEqual(node.differences(), [])
})

test('endpoints.identity-labels leaves copies one identity, and policy sees no other labels', () => {
  const spec = 'egress: [ { toEndpoints: [ { matchLabels: { pod-template-hash: "2" } } ] } ]'
  const all = mkNode(spec)
  assert.notEqual(all.identityOf('10.200.0.2'), all.identityOf('10.200.0.3'))
  assert.equal(verdicts(all, '10.200.0.2'), 'allow')
  const node = mkNode(spec, { identityLabels: new IdentityLabels(['!pod-template-hash']) })
  assert.equal(node.identityOf('10.200.0.2'), node.identityOf('10.200.0.3'))
  assert.equal(verdicts(node, '10.200.0.2'), 'deny')
})

test('IdentityLabels keeps and leaves out by the longest entry that matches', () => {
  const labels = ['k8s:app=a', 'k8s:team.x=1', 'own:team.y=2', 'k8s:io.kubernetes.pod.namespace=n']
  const rows: readonly (readonly [
    entries: readonly string[],
    kept: readonly number[],
    why: string,
  ])[] = [
    [[], [0, 1, 2, 3], 'no entry keeps all'],
    [['!app'], [1, 2, 3], 'a label that is left out'],
    [['app'], [0, 3], 'a label that is kept, and the namespace'],
    [['team.*', '!team.y'], [1, 3], 'the longer one decides'],
    [['k8s:team.*'], [1, 3], 'of one source only'],
    [['!io.kubernetes.pod.namespace'], [0, 1, 2, 3], 'the namespace stays'],
  ]
  for (const [entries, kept, why] of rows) {
    assert.deepEqual(
      new IdentityLabels(entries).of(labels),
      kept.map((i) => labels[i]),
      why,
    )
  }
})

test('IdentityLabels gives endpoints without a cluster the label of the cluster, whatever labels count', () => {
  const key = 'k8s:io.cilium.k8s.policy.cluster'
  const rows: readonly (readonly [entries: string[], labels: string[], seen: string[]])[] = [
    [[], [], [`${key}=blue`]],
    [[], ['k8s:app=a'], ['k8s:app=a', `${key}=blue`]],
    [['app'], ['k8s:app=a', 'k8s:b=c'], ['k8s:app=a', `${key}=blue`]],
    [
      ['app', '!io.cilium.*'],
      ['k8s:app=a', `${key}=red`],
      ['k8s:app=a', `${key}=red`],
    ],
    [
      [],
      ['own:io.cilium.k8s.policy.cluster=red'],
      ['own:io.cilium.k8s.policy.cluster=red', `${key}=blue`],
    ],
  ]
  for (const [entries, labels, seen] of rows) {
    const identityLabels = new IdentityLabels(entries, 'blue')
    assert.deepEqual(identityLabels.of(labels), seen)
    assert.equal(identityLabels.of(labels), identityLabels.of(labels), 'remembered')
  }
  const complete = [`${key}=red`]
  assert.equal(new IdentityLabels([], 'blue').of(complete), complete)
})

test('PortResolver resolves named ports: none if they differ, all of them to deny', () => {
  const port = (name: string, number: number) => ({ name, protocol: 6, port: number })
  const names = portNamesOf([[port('web', 80)], [port('web', 8080), port('db', 5432)]])
  const rule = (key: string, name: string) =>
    `${key}: [ { toEntities: [ world ], toPorts: [ { ports: [ { port: ${name}, protocol: TCP } ] } ] } ]`
  const resolver = new PortResolver()
  const ports = (spec: string): readonly number[] =>
    resolver
      .resolve(mkPolicies(spec), names)
      .flatMap(({ rules }) => rules.flatMap(({ toPorts = [] }) => toPorts))
      .flatMap((entry) => entry.ports.map(({ low }) => low))
  assert.deepEqual(ports(rule('egress', 'db')), [5432])
  assert.deepEqual(ports(rule('egress', 'DB')), [5432], 'names have no case')
  assert.deepEqual(ports(rule('egress', 'web')), [], 'it could be either')
  assert.deepEqual(ports(rule('egressDeny', 'web')), [80, 8080])
  assert.deepEqual(ports(rule('egress', 'nothing')), [])
  const policies = mkPolicies(rule('egress', 'db'))
  assert.equal(resolver.resolve(policies, names)[0], resolver.resolve(policies, names)[0])
})

const HEAD = 'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\n'

test('policies.ingress: ignore loads the egress half and marks the policy', () => {
  const text = `${HEAD}spec: { endpointSelector: {}, ingress: [{}], egress: [{ toEntities: [host] }], enableDefaultDeny: { ingress: true } }\n`
  const { policies, faults } = loadPolicies(text, 'f', { ingress: 'ignore' })
  assert.deepEqual(faults, [])
  assert.deepEqual(
    policies.map(({ rules, defaultDeny, halfEnforced }) => [
      rules.length,
      defaultDeny,
      halfEnforced,
    ]),
    [[1, true, true]],
  )
  const only = loadPolicies(`${HEAD}spec: { endpointSelector: {}, ingress: [{}] }\n`, 'f', {
    ingress: 'ignore',
  })
  assert.deepEqual(
    only.policies.map(({ defaultDeny }) => defaultDeny),
    [false],
    'egress is not mentioned',
  )
})

test('policies.unsupported-fields: warn reports each field and keeps the rest of the policy', () => {
  const text = `${HEAD}spec:\n  endpointSelector: {}\n  egress:\n    - toServices: [{}]\n    - toEntities: [host]\n    - toPorts: [{ ports: [{ port: 80 }], rules: { http: [{}] } }]\n`
  const { policies, warnings } = loadPolicies(text, 'f', { unsupportedFields: 'warn' })
  assert.deepEqual(
    warnings.map(({ position, message }) => `${position.line} ${message.split(':')[0]}`),
    ['7 spec.egress[0].toServices', '9 spec.egress[2].toPorts[0].rules.http'],
  )
  assert.deepEqual(
    policies.map(({ rules }) => rules.map(({ toPorts }) => toPorts)),
    [[undefined, [{ ports: [], dns: undefined }]]],
  )
})
