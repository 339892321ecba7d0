// What the sources receive when the objects of a cluster appear, change and go, on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatPrefix } from '../../src/core/ip.ts'
import { ClusterObjects } from '../../src/kubernetes/cluster/cluster-objects.ts'
import { COLLECTIONS, type Collection } from '../../src/kubernetes/reflector/collections.ts'
import { KeptObjects } from '../../src/kubernetes/cluster/kept-objects.ts'
import type { KubernetesObject } from '../../src/kubernetes/reflector/objects.ts'
import { loadPolicyObjects } from '../../src/policy/load/load.ts'
import { FakeClock } from '../support/fake-clock.ts'

const HOLD_MS = 300_000

function collectionOf(kind: string): Collection {
  const found = COLLECTIONS.find((each) => each.kind === kind)
  assert.ok(found !== undefined)
  return found
}

const PODS = collectionOf('Pod')
const NAMESPACES = collectionOf('Namespace')
const POLICIES = collectionOf('CiliumNetworkPolicy')

let version = 1

function metadataOf(name: string, namespace?: string) {
  return {
    name,
    ...(namespace && { namespace }),
    uid: `uid-${name}`,
    resourceVersion: `${version++}`,
  }
}

function pod(name: string, address: string, more: object = {}): KubernetesObject {
  return {
    metadata: { ...metadataOf(name, 'shop'), labels: { app: name } },
    spec: {
      serviceAccountName: 'robot',
      containers: [{ ports: [{ name: 'web', containerPort: 80 }] }],
    },
    status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }], ...more },
  }
}

function policy(
  name: string,
  spec: unknown = { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.0/24'] }] },
): KubernetesObject {
  return { metadata: metadataOf(name, 'shop'), spec }
}

const NAMESPACE: KubernetesObject = {
  metadata: { ...metadataOf('shop'), labels: { team: 'blue' } },
}

class Lab {
  readonly clock = new FakeClock()
  readonly saved = new Map<string, string>()
  /** What the sources have after the last change: a policy's number of faults, an endpoint's labels. */
  readonly policies = new Map<string, number>()
  readonly endpoints = new Map<string, string>()
  readonly interfaces = new Map<string, string>()
  readonly holds: string[] = []
  changes = 0
  objects: ClusterObjects

  constructor() {
    this.objects = this.make()
  }

  /** Makes what a daemon has after a start with the kept objects. */
  make(): ClusterObjects {
    const keep = (name: string, text: string | undefined): void => {
      if (text === undefined) this.saved.delete(name)
      else this.saved.set(name, text)
    }
    return new ClusterObjects({
      clock: this.clock,
      collections: [PODS, NAMESPACES, POLICIES],
      clusterName: 'default',
      massRemoval: { share: 0.2, holdMs: HOLD_MS },
      kept: new KeptObjects({ saved: new Map(this.saved), keep }),
      parsePolicy: (document, name) => {
        const { policies: items, faults } = loadPolicyObjects(document, name)
        return { items, faults }
      },
      interfaceOf: (address) => this.interfaces.get(formatPrefix(address).replace(/\/.*/, '')),
      onChange: ({ policies, endpoints }) => {
        this.changes++
        for (const [name, received] of policies) {
          if (received === undefined) this.policies.delete(name)
          else this.policies.set(name, received.faults.length)
        }
        for (const [name, received] of endpoints) {
          const record = received?.items[0]
          if (record === undefined) this.endpoints.delete(name)
          else this.endpoints.set(name, record.labels.join(' '))
        }
      },
      onHold: ({ kind }, isHolding) => this.holds.push(`${kind} ${isHolding ? 'held' : 'removed'}`),
    })
  }

  list(collection: Collection, objects: readonly KubernetesObject[]): void {
    this.objects.list(collection, undefined, objects)
    this.objects.settle(collection)
  }

  settle(): void {
    this.clock.advance(10)
  }
}

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
  lab.objects.change(
    POLICIES,
    policy('allow', { endpointSelector: {}, egress: [{ toCIDR: ['no'] }] }),
  )
  lab.settle()
  assert.equal(lab.policies.get('kubernetes:CiliumNetworkPolicy/shop/allow'), 1)
  assert.equal(lab.saved.get('kubernetes:CiliumNetworkPolicy/shop/allow'), kept)
  assert.equal(lab.objects.countsOf(POLICIES).faulty, 1)
})

void test('removed pods go at once; many removed policies are held until someone accepts', () => {
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

void test('texts in the state that are no objects are passed over', () => {
  const lab = new Lab()
  lab.saved.set('kubernetes:Pod/shop/web', '{')
  lab.saved.set('kubernetes:Unknown/x', '{}')
  lab.saved.set('/etc/namegate/policy.yaml', 'kind: x')
  lab.objects = lab.make()
  lab.objects.restore()
  lab.settle()
  assert.equal(lab.changes, 0)
})
