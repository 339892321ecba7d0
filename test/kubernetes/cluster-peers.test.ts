// The addresses and labels of the pods of other nodes that the sources receive.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubernetesObject } from '../../src/kubernetes/reflector/objects.ts'
import {
  ClusterLab,
  metadataOf,
  NAMESPACE,
  NAMESPACES,
  PEERS,
  pod,
  PODS,
  POLICIES,
} from '../support/kubernetes/cluster-lab.ts'

function mkLab(...peers: readonly KubernetesObject[]): ClusterLab {
  const lab = new ClusterLab(PEERS)
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [])
  lab.list(POLICIES, [])
  lab.list(PEERS, peers)
  lab.settle()
  return lab
}

function change(lab: ClusterLab, object: KubernetesObject): void {
  lab.objects.change(PEERS, object)
  lab.settle()
}

function remove(lab: ClusterLab, object: KubernetesObject): void {
  lab.objects.remove(PEERS, object)
  lab.settle()
}

/** The addresses of each peer. */
function addresses(lab: ClusterLab): Readonly<Record<string, string>> {
  const rows = [...lab.peers].map(([name, text]) => {
    return [
      name,
      text
        .split(' ')
        .filter((each) => !each.startsWith('k8s:'))
        .join(' '),
    ] as const
  })
  return Object.fromEntries(rows.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function labelled(object: KubernetesObject, labels: Readonly<Record<string, string>>) {
  return { ...object, metadata: { ...object.metadata, labels } }
}

void test('a pod of another node is a peer with the labels of Cilium', () => {
  const lab = mkLab(pod('db', '10.0.1.1', { podIPs: [{ ip: '10.0.1.1' }, { ip: 'fd00::1' }] }))
  assert.deepEqual(Object.fromEntries(lab.peers), {
    'shop/db': [
      '10.0.1.1/32',
      'fd00::1/128',
      'k8s:app=db',
      'k8s:io.cilium.k8s.namespace.labels.team=blue',
      'k8s:io.cilium.k8s.policy.cluster=default',
      'k8s:io.cilium.k8s.policy.serviceaccount=robot',
      'k8s:io.kubernetes.pod.namespace=shop',
    ].join(' '),
  })
  assert.equal(lab.endpoints.size, 0, 'it is no endpoint')
})

const NO_PEERS: readonly { readonly why: string; readonly object: KubernetesObject }[] = [
  { why: 'host network', object: { ...pod('a', '10.0.1.1'), spec: { hostNetwork: true } } },
  { why: 'finished', object: pod('a', '10.0.1.1', { phase: 'Failed' }) },
  { why: 'no address', object: pod('a', '', { podIPs: [] }) },
  { why: 'an address of every host', object: pod('a', '127.0.0.1') },
  { why: 'a link-local address', object: pod('a', '169.254.169.254') },
  {
    why: 'a namespace that is not known',
    object: { ...pod('a', '10.0.1.1'), metadata: metadataOf('a', 'other') },
  },
]
for (const { why, object } of NO_PEERS) {
  void test(`a pod of another node is no peer: ${why}`, () => {
    assert.equal(mkLab(object).peers.size, 0)
  })
}

void test('a peer follows its pod: labels, the labels of its namespace, its end', () => {
  const db = pod('db', '10.0.1.1')
  const lab = mkLab(db)
  change(lab, labelled(db, { app: 'cache' }))
  assert.match(lab.peers.get('shop/db') ?? '', /k8s:app=cache/)
  const metadata = { ...NAMESPACE.metadata, labels: { team: 'green' } }
  lab.objects.change(NAMESPACES, { metadata })
  lab.settle()
  assert.match(lab.peers.get('shop/db') ?? '', /namespace\.labels\.team=green/)
  change(lab, { ...db, status: { phase: 'Succeeded', podIPs: [{ ip: '10.0.1.1' }] } })
  assert.equal(lab.peers.size, 0)
})

void test('a change without news about a peer changes nothing', () => {
  const lab = mkLab(pod('db', '10.0.1.1'))
  const before = lab.changes
  change(lab, pod('db', '10.0.1.1', { conditions: [{ type: 'Ready' }] }))
  assert.equal(lab.changes, before)
})

void test('an address belongs to the pod that took it last, whatever changes later', () => {
  const [old, young] = [pod('old', '10.0.1.1'), pod('young', '10.0.1.1')]
  const lab = mkLab(young, old)
  assert.deepEqual(addresses(lab), { 'shop/young': '10.0.1.1/32' })
  change(lab, labelled(pod('old', '10.0.1.1'), { app: 'late' }))
  assert.deepEqual(addresses(lab), { 'shop/young': '10.0.1.1/32' }, 'it took the address first')
  remove(lab, old)
  assert.deepEqual(addresses(lab), { 'shop/young': '10.0.1.1/32' }, 'a later removal takes nothing')
  remove(lab, young)
  assert.deepEqual(addresses(lab), {})
})

void test('an address returns to the older pod when the younger one ends', () => {
  const [old, young] = [pod('old', '10.0.1.1'), pod('young', '10.0.1.1')]
  const lab = mkLab(old)
  change(lab, young)
  assert.deepEqual(addresses(lab), { 'shop/young': '10.0.1.1/32' })
  remove(lab, young)
  assert.deepEqual(addresses(lab), { 'shop/old': '10.0.1.1/32' })
})

void test('a new pod of the same name gets its address again', () => {
  const lab = mkLab(pod('a', '10.0.1.1'), pod('b', '10.0.1.2'))
  change(lab, pod('b', '10.0.1.1'))
  const again = pod('a', '10.0.1.1')
  change(lab, { ...again, metadata: { ...again.metadata, uid: 'uid-again' } })
  assert.deepEqual(addresses(lab), { 'shop/a': '10.0.1.1/32' })
})

void test('pods beyond the bound wait, and the oldest becomes a peer when another one ends', () => {
  const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map((name, i) => pod(name, `10.0.1.${i}`))
  const lab = mkLab(a!, b!, c!, d!, e!)
  const { peers } = lab.objects
  assert.deepEqual(Object.keys(addresses(lab)), ['shop/a', 'shop/b', 'shop/c'])
  assert.deepEqual([peers.count, peers.waiting, peers.refusals], [3, 2, 2])
  change(lab, labelled(e!, { app: 'later' }))
  assert.equal(peers.refusals, 2, 'counted once')
  remove(lab, b!)
  assert.deepEqual(Object.keys(addresses(lab)), ['shop/a', 'shop/c', 'shop/d'])
  lab.list(PEERS, [a!, e!])
  lab.settle()
  assert.deepEqual(Object.keys(addresses(lab)), ['shop/a', 'shop/e'])
  assert.match(lab.peers.get('shop/e') ?? '', /k8s:app=e/)
  assert.equal(peers.waiting, 0)
})

void test('endpoints wait for the first list of peers', () => {
  const lab = new ClusterLab(PEERS)
  lab.interfaces.set('10.0.0.1', 'veth1')
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.list(POLICIES, [])
  lab.settle()
  assert.equal(lab.endpoints.size, 0)
  lab.list(PEERS, [])
  lab.settle()
  assert.equal(lab.endpoints.size, 1)
})

void test('many peers arrive in slices, endpoints wait for the first of them, and a start has them at once', () => {
  const lab = new ClusterLab(PEERS)
  lab.peersMax = 1000
  lab.objects = lab.make()
  lab.interfaces.set('10.0.0.1', 'veth1')
  lab.list(NAMESPACES, [NAMESPACE])
  lab.list(PODS, [pod('web', '10.0.0.1')])
  lab.list(POLICIES, [])
  const many = Array.from({ length: 500 }, (_, i) =>
    pod(`p${i}`, `10.0.${1 + (i >> 8)}.${i & 255}`),
  )
  lab.list(PEERS, many)
  const found: string[] = []
  for (let i = 0; i < 20; i++) {
    lab.clock.advance(i === 0 ? 10 : 1)
    found.push(`${lab.peers.size} ${lab.endpoints.size}`)
  }
  assert.equal(found[0], '64 0')
  assert.equal(found.at(-1), '500 1')
  assert.ok(
    found.every((each) => each.endsWith(' 0') || each === '500 1'),
    found.join(),
  )
  lab.list(PEERS, many.slice(1))
  lab.clock.advance(100)
  assert.equal(lab.peers.has('shop/p0'), false)
  lab.peers.clear()
  lab.objects = lab.make()
  lab.objects.restore()
  assert.equal(lab.peers.size, 499)
})

void test('a start has the peers of the daemon before, and the last pod of each address', () => {
  const lab = mkLab(pod('old', '10.0.1.1'), pod('young', '10.0.1.1'), pod('db', '10.0.1.2'))
  const before = Object.fromEntries(lab.peers)
  lab.peers.clear()
  lab.objects = lab.make()
  lab.objects.restore()
  assert.deepEqual(Object.fromEntries(lab.peers), before)
})

void test('a start that reads no peers forgets those of the daemon before', () => {
  const lab = mkLab(pod('db', '10.0.1.2'))
  const without = new ClusterLab()
  for (const [name, text] of lab.saved) without.saved.set(name, text)
  without.objects = without.make()
  without.objects.restore()
  assert.equal(without.peers.size, 0)
  assert.deepEqual(
    [...without.saved.keys()].filter((name) => name.includes('Peer')),
    [],
  )
})
