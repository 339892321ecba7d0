// The objects of a cluster on fake time, and what the sources receive of them.

import assert from 'node:assert/strict'
import { formatPrefix } from '../../../src/core/ip.ts'
import { ClusterObjects } from '../../../src/kubernetes/cluster/cluster-objects.ts'
import { COLLECTIONS, type Collection } from '../../../src/kubernetes/reflector/collections.ts'
import { KeptObjects } from '../../../src/kubernetes/cluster/kept-objects.ts'
import type { KubernetesObject } from '../../../src/kubernetes/reflector/objects.ts'
import { loadPolicyObjects } from '../../../src/policy/load/load.ts'
import { FakeClock } from '../fake-clock.ts'

const HOLD_MS = 300_000

function collectionOf(kind: string): Collection {
  const found = COLLECTIONS.find((each) => each.kind === kind)
  assert.ok(found !== undefined)
  return found
}

export const PODS = collectionOf('Pod')
export const PEERS = collectionOf('Peer')
export const NAMESPACES = collectionOf('Namespace')
export const POLICIES = collectionOf('CiliumNetworkPolicy')

let version = 1

export function metadataOf(name: string, namespace?: string) {
  return {
    name,
    ...(namespace && { namespace }),
    uid: `uid-${name}`,
    resourceVersion: `${version++}`,
  }
}

export function pod(name: string, address: string, more: object = {}): KubernetesObject {
  return {
    metadata: { ...metadataOf(name, 'shop'), labels: { app: name } },
    spec: {
      serviceAccountName: 'robot',
      containers: [{ ports: [{ name: 'web', containerPort: 80 }] }],
    },
    status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }], ...more },
  }
}

export function policy(
  name: string,
  spec: unknown = { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.0/24'] }] },
): KubernetesObject {
  return { metadata: metadataOf(name, 'shop'), spec }
}

export const NAMESPACE: KubernetesObject = {
  metadata: { ...metadataOf('shop'), labels: { team: 'blue' } },
}

/** The objects of a cluster, and what the sources have of them. */
export class ClusterLab {
  readonly clock = new FakeClock()
  readonly saved = new Map<string, string>()
  /** What the sources have after the last change: a policy's number of faults, an endpoint's labels. */
  readonly policies = new Map<string, number>()
  readonly endpoints = new Map<string, string>()
  /** The addresses and labels of peers. */
  readonly peers = new Map<string, string>()
  readonly interfaces = new Map<string, string>()
  readonly holds: string[] = []
  changes = 0
  peersMax = 3
  readonly collections: readonly Collection[]
  objects: ClusterObjects

  constructor(...more: readonly Collection[]) {
    this.collections = [PODS, NAMESPACES, POLICIES, ...more]
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
      collections: this.collections,
      clusterName: 'default',
      peersMax: this.peersMax,
      massRemoval: { share: 0.2, holdMs: HOLD_MS },
      kept: new KeptObjects({ saved: new Map(this.saved), keep }),
      parsePolicy: (document, name) => {
        const { policies: items, faults } = loadPolicyObjects(document, name)
        return { items, faults }
      },
      interfaceOf: (address) => this.interfaces.get(formatPrefix(address).replace(/\/.*/, '')),
      onChange: ({ policies, endpoints, peers }) => {
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
        for (const [name, peer] of peers) {
          if (peer === undefined) this.peers.delete(name)
          else this.peers.set(name, [...peer.addresses.map(formatPrefix), ...peer.labels].join(' '))
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
