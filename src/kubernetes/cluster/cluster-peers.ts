// Holds the pods of other nodes, which become peers: addresses with labels that policies select. An address belongs to one pod only, the one
// that took it last: when a pod of another node gets the address of a pod that is gone, the removal of the old pod can come later. The number
// of peers is bounded. Pods beyond the bound wait in the order in which they came, until a peer goes.
//
// Cost: a change of a pod looks at this pod, and at the pods that claim the same addresses. A list of many pods is taken in slices, so that
// queries do not wait for it.

import { formatPrefix, parseAddress, type Prefix } from '../../core/ip.ts'
import { addTo, removeFrom, type FewSet } from '../../core/tables/few.ts'
import type { Resource } from '../../enforcement/resource-control.ts'
import { Guard } from '../../names/guard.ts'
import type { KubernetesObject } from '../reflector/objects.ts'
import { isOlder } from '../reflector/resource-version.ts'
import type { KeptObjects } from './kept-objects.ts'
import type { Namespaces } from './namespaces.ts'
import { peerDocument, podLabels, readPod, type Pod } from './pods.ts'

export interface ClusterPeersOptions {
  readonly clusterName: string
  readonly namespaces: Namespaces
  readonly kept: KeptObjects | undefined
  /** `limits.peers`. */
  readonly peersMax: number
}

interface Peer {
  /** `namespace/name`. */
  readonly owner: string
  readonly pod: Pod
  readonly addresses: readonly Prefix[]
  /** The version of the pod when it took these addresses. */
  readonly since: string
  /** The document of the pod in the state, as JSON. */
  readonly text: string
}

/** A pod has at most one address of each family. */
const ADDRESSES_MAX = 2

/** How many pods one call of `takeChanges` reads. They take about 5 ms. */
const SLICE = 64

/** Addresses of every host, which are no pod's. */
const SPECIAL = new Guard({ nodeAddresses: [], protectedPrefixes: [] })

export class ClusterPeers {
  readonly #options: ClusterPeersOptions
  /** Pods that were set or removed (`undefined`), and are not read yet. */
  readonly #incoming = new Map<string, KubernetesObject | undefined>()
  readonly #peers = new Map<string, Peer>()
  /** Pods beyond the bound, the oldest first. */
  readonly #waiting = new Map<string, KubernetesObject>()
  /** The pods that claim an address. */
  readonly #byAddress = new Map<string, FewSet<string>>()
  readonly #byNamespace = new Map<string, FewSet<string>>()
  /** The owners of the peers that may differ from those in force, by the name of the object. */
  readonly #touched = new Map<string, string>()
  /** How often a pod found no room. */
  refusals = 0

  constructor(options: ClusterPeersOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#peers.size
  }

  /** How many pods the bound leaves out. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** True if `takeChanges` has to be called again. */
  get hasMore(): boolean {
    return this.#incoming.size > 0
  }

  names(): readonly string[] {
    return [...this.#peers.keys(), ...this.#waiting.keys(), ...this.#incoming.keys()]
  }

  set(name: string, object: KubernetesObject): void {
    this.#incoming.set(name, object)
  }

  remove(name: string): void {
    this.#incoming.set(name, undefined)
  }

  #read(): void {
    let left = SLICE
    for (const [name, object] of this.#incoming) {
      if (left-- === 0) return
      this.#incoming.delete(name)
      if (object === undefined) this.#remove(name)
      else this.#set(name, object)
    }
  }

  /** Takes a pod. A pod without an address of its own is no peer. */
  #set(name: string, object: KubernetesObject): void {
    const pod = readPod(object)
    const addresses = pod.isOnHostNetwork || pod.hasFinished ? [] : addressesOf(pod.addresses)
    if (addresses.length === 0) return this.#remove(name)
    const before = this.#peers.get(name)
    if (before === undefined && this.#peers.size >= this.#options.peersMax) {
      if (!this.#waiting.has(name)) this.refusals++
      this.#waiting.set(name, object)
      return
    }
    const isSamePlace = before?.pod.uid === pod.uid && samePrefixes(before.addresses, addresses)
    const since = isSamePlace ? before.since : object.metadata.resourceVersion
    const text = JSON.stringify(peerDocument(pod, since))
    if (before?.text === text) return
    const owner = `${pod.namespace}/${pod.name}`
    if (before !== undefined) this.#unclaim(name, before)
    this.#peers.set(name, { owner, pod, addresses, since, text })
    for (const address of addresses) addTo(this.#byAddress, formatPrefix(address), name)
    addTo(this.#byNamespace, pod.namespace, name)
    this.#touch(name, owner, addresses)
    this.#options.kept?.keep(name, text)
  }

  #remove(name: string): void {
    this.#waiting.delete(name)
    const peer = this.#peers.get(name)
    if (peer === undefined) return
    this.#peers.delete(name)
    this.#unclaim(name, peer)
    this.#options.kept?.keep(name, undefined)
    for (const [oldest, object] of this.#waiting) {
      this.#waiting.delete(oldest)
      return this.#set(oldest, object)
    }
  }

  /** Notes that the labels of a namespace changed. */
  namespaceChanged(namespace: string): void {
    for (const name of this.#byNamespace.get(namespace) ?? []) {
      this.#touched.set(name, this.#peers.get(name)?.owner ?? '')
    }
  }

  hasNamespace(namespace: string): boolean {
    return this.#byNamespace.has(namespace)
  }

  /** Returns peers that changed since the last call, by owner. `undefined`: the peer is gone. */
  takeChanges(): ReadonlyMap<string, Resource | undefined> {
    this.#read()
    const changes = new Map<string, Resource | undefined>()
    for (const [name, owner] of this.#touched) changes.set(owner, this.#resourceOf(name))
    this.#touched.clear()
    return changes
  }

  #resourceOf(name: string): Resource | undefined {
    const peer = this.#peers.get(name)
    const { clusterName, namespaces } = this.#options
    const namespaceLabels = peer && namespaces.labelsOf(peer.pod.namespace)
    if (peer === undefined || namespaceLabels === undefined) return undefined
    const addresses = peer.addresses.filter((each) => this.#holderOf(each) === name)
    if (addresses.length === 0) return undefined
    const labels = podLabels(peer.pod, { namespaceLabels, clusterName }, () => undefined)
    return { name: peer.owner, addresses, labels }
  }

  /** The pod that took the address last. */
  #holderOf(address: Prefix): string | undefined {
    let holder: string | undefined
    let since = ''
    for (const name of this.#byAddress.get(formatPrefix(address)) ?? []) {
      const peer = this.#peers.get(name)
      if (peer === undefined || (holder !== undefined && isOlder(peer.since, since))) continue
      holder = name
      since = peer.since
    }
    return holder
  }

  #unclaim(name: string, { owner, pod, addresses }: Peer): void {
    for (const address of addresses) removeFrom(this.#byAddress, formatPrefix(address), name)
    removeFrom(this.#byNamespace, pod.namespace, name)
    this.#touch(name, owner, addresses)
  }

  /** Marks a pod, and every pod that claims one of the addresses. */
  #touch(name: string, owner: string, addresses: readonly Prefix[]): void {
    this.#touched.set(name, owner)
    for (const address of addresses) {
      for (const other of this.#byAddress.get(formatPrefix(address)) ?? []) {
        this.#touched.set(other, this.#peers.get(other)?.owner ?? owner)
      }
    }
  }
}

function addressesOf(texts: readonly string[]): readonly Prefix[] {
  const addresses = texts.flatMap((text) => parseAddress(text) ?? [])
  const own = addresses.filter(({ family, octets }) => !SPECIAL.isGuarded(family, octets, 0))
  return own.slice(0, ADDRESSES_MAX)
}

function samePrefixes(a: readonly Prefix[], b: readonly Prefix[]): boolean {
  const texts = b.map(formatPrefix)
  return a.length === b.length && a.every((each, i) => formatPrefix(each) === texts[i])
}
