// What the sources receive when the objects of a cluster are added, changed and removed, on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubernetesObject } from '../../src/kubernetes/reflector/objects.ts'
import {
  ClusterLab as Lab,
  NAMESPACE,
  NAMESPACES,
  pod,
  PODS,
  POLICIES,
  policy,
} from '../support/kubernetes/cluster-lab.ts'

void test('endpoints wait for every collection, and then have the labels of Cilium', () => {
  const lab = new Lab()
  lab.interfaces.set('10.0.0.1', 'veth1')
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.list(NAMESPACES, [NAMESPACE])
  lab.settle()
  assert.equal(lab.endpoints.size, 0, 'the policies are not known yet')
  lab.list(POLICIES, [policy('allow')])
  lab.settle()
  assert.deepEqual([...lab.policies], [['kubernetes:CiliumNetworkPolicy/shop/allow', 0]])
  assert.equal(
    lab.endpoints.get('kubernetes:Pod/shop/web'),
    [
      'k8s:app=web',
      'k8s:io.cilium.k8s.namespace.labels.team=blue',
      'k8s:io.cilium.k8s.policy.cluster=default',
      'k8s:io.cilium.k8s.policy.serviceaccount=robot',
      'k8s:io.kubernetes.pod.namespace=shop',
    ].join(' '),
  )
})

const LEFT_OUT: readonly { why: string; object: KubernetesObject }[] = [
  { why: 'host-network', object: { ...pod('a', '10.0.0.1'), spec: { hostNetwork: true } } },
  { why: 'finished', object: pod('a', '10.0.0.1', { phase: 'Succeeded' }) },
  { why: 'no-address', object: pod('a', '', { podIPs: [] }) },
  { why: 'no-interface', object: pod('a', '10.0.0.9') },
]
for (const { why, object } of LEFT_OUT) {
  void test(`a pod is no endpoint: ${why}`, () => {
    const lab = new Lab()
    lab.interfaces.set('10.0.0.1', 'veth1')
    lab.list(POLICIES, [])
    lab.list(NAMESPACES, [NAMESPACE])
    lab.list(PODS, [object])
    lab.settle()
    assert.equal(lab.endpoints.size, 0)
    assert.deepEqual([...lab.objects.pods.leftOut], [[why, 1]])
  })
}

void test('a pod becomes an endpoint when its interface appears, without an event', () => {
  const lab = new Lab()
  lab.list(POLICIES, [])
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.settle()
  assert.equal(lab.endpoints.size, 0)
  lab.interfaces.set('10.0.0.1', 'veth1')
  lab.clock.advance(500)
  assert.equal(lab.endpoints.size, 1)
  assert.equal(lab.objects.pods.leftOut.size, 0)
})

void test('a label of a namespace reaches its pods, and a pod cannot set its own default', () => {
  const lab = new Lab()
  lab.interfaces.set('10.0.0.1', 'veth1')
  const own = {
    'namegate.io/default-egress': 'allow',
    'io.cilium.k8s.namespace.labels.team': 'red',
  }
  const bold = pod('web', '10.0.0.1')
  lab.list(POLICIES, [])
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [{ ...bold, metadata: { ...bold.metadata, labels: own } }])
  lab.settle()
  const labels = (): string => lab.endpoints.get('kubernetes:Pod/shop/web') ?? ''
  assert.match(labels(), /namespace\.labels\.team=blue/)
  assert.doesNotMatch(labels(), /default-egress|team=red/)
  const changed = { team: 'green', 'namegate.io/default-egress': 'deny' }
  lab.objects.change(NAMESPACES, { metadata: { ...NAMESPACE.metadata, labels: changed } })
  lab.settle()
  assert.match(labels(), /namespace\.labels\.team=green/)
  assert.match(labels(), /k8s:namegate\.io\/default-egress=deny/)
})

void test('a policy that only its status changed is the same', () => {
  const lab = new Lab()
  const first = policy('allow')
  lab.list(POLICIES, [first])
  lab.settle()
  const before = lab.changes
  lab.objects.change(POLICIES, { ...first, status: { nodes: 3 } })
  lab.settle()
  assert.equal(lab.changes, before)
})

void test('a faulty policy is reported with its object, and its last good version is kept', () => {
  const lab = new Lab()
  lab.list(POLICIES, [policy('allow')])
  lab.settle()
  const kept = lab.saved.get('kubernetes:CiliumNetworkPolicy/shop/allow')
  const bad = { endpointSelector: {}, egress: [{ toCIDR: ['no'] }] }
  lab.objects.change(POLICIES, policy('allow', bad))
  lab.settle()
  assert.equal(lab.policies.get('kubernetes:CiliumNetworkPolicy/shop/allow'), 1)
  assert.equal(lab.saved.get('kubernetes:CiliumNetworkPolicy/shop/allow'), kept)
  assert.equal(lab.objects.countsOf(POLICIES).faulty, 1)
  lab.objects.change(POLICIES, policy('new', bad))
  const faulty = [...lab.objects.faulty()].map(([, { uid, hasLastGood }]) => [uid, hasLastGood])
  assert.deepEqual(Object.fromEntries(faulty), { 'uid-allow': true, 'uid-new': false })
})

void test('removed pods take effect at once; many removed policies are held until a user accepts', () => {
  const lab = new Lab()
  for (const at of [1, 2, 3]) lab.interfaces.set(`10.0.0.${at}`, `veth${at}`)
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(
    PODS,
    [1, 2, 3].map((at) => pod(`web${at}`, `10.0.0.${at}`)),
  )
  lab.list(
    POLICIES,
    ['a', 'b', 'c'].map((name) => policy(name)),
  )
  lab.settle()
  lab.list(PODS, [])
  lab.list(POLICIES, [policy('c')])
  lab.settle()
  assert.equal(lab.endpoints.size, 0)
  assert.equal(lab.policies.size, 3)
  assert.deepEqual(lab.holds, ['CiliumNetworkPolicy held'])
  assert.equal(lab.objects.countsOf(POLICIES).held, 2)
  assert.equal(lab.objects.uidOf('kubernetes:CiliumNetworkPolicy/shop/a'), undefined)
  assert.equal(lab.objects.accept(), 2)
  lab.settle()
  assert.deepEqual([...lab.policies.keys()], ['kubernetes:CiliumNetworkPolicy/shop/c'])
})

void test('a list with an object that cannot be read removes nothing', () => {
  const lab = new Lab()
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [])
  lab.list(POLICIES, [policy('a'), policy('b')])
  lab.settle()
  lab.objects.list(POLICIES, undefined, [policy('a')], true)
  lab.clock.advance(20_000)
  assert.equal(lab.policies.size, 2)
})

void test('a start has the objects of the daemon before, without the server', () => {
  const lab = new Lab()
  lab.interfaces.set('10.0.0.1', 'veth1')
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.list(POLICIES, [policy('a')])
  lab.settle()
  const [policies, endpoints] = [[...lab.policies], [...lab.endpoints]]
  lab.policies.clear()
  lab.endpoints.clear()
  lab.objects = lab.make()
  lab.objects.restore()
  assert.deepEqual([...lab.policies], policies)
  assert.deepEqual([...lab.endpoints], endpoints)
  assert.equal(lab.objects.isComplete, true)
})

void test('a start after a daemon that had not listed every collection waits for the lists', () => {
  const lab = new Lab()
  lab.interfaces.set('10.0.0.1', 'veth1')
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.settle()
  lab.objects = lab.make()
  lab.objects.restore()
  lab.settle()
  assert.equal(lab.objects.isComplete, false)
  assert.equal(lab.endpoints.size, 0, 'a pod in force without its policies would be open')
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.list(POLICIES, [policy('a')])
  lab.settle()
  assert.equal(lab.endpoints.size, 1)
})

void test('texts in the state that are no objects are skipped', () => {
  const lab = new Lab()
  lab.saved.set('kubernetes:Pod/shop/web', '{')
  lab.saved.set('kubernetes:Unknown/x', '{}')
  lab.saved.set('/etc/namegate/policy.yaml', 'kind: x')
  lab.objects = lab.make()
  lab.objects.restore()
  lab.settle()
  assert.equal(lab.changes, 0)
})
