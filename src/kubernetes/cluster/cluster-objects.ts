// Holds what namegate knows of a cluster, and gives its policies and endpoints to the sources. Events of one moment become one change.
// Everything in force is kept over restarts, so a daemon starts with the objects of the daemon before it.
//
// Endpoints wait until every collection was listed once or is kept. So no pod is in force before the policies that select it.

import type { Clock, Timer } from '../../core/clock.ts'
import type { ReceivedObjects } from '../../sources/files/given-items.ts'
import { objectKind, objectName } from '../../core/object-names.ts'
import { ClusterPeers } from './cluster-peers.ts'
import { ClusterPods, type ClusterPodsOptions } from './cluster-pods.ts'
import {
  ClusterPolicies,
  type ClusterPoliciesOptions,
  type FaultyPolicy,
} from './cluster-policies.ts'
import type { Collection } from '../reflector/collections.ts'
import type { KeptObjects } from './kept-objects.ts'
import { namespaceObject, Namespaces } from './namespaces.ts'
import type { KubernetesObject } from '../reflector/objects.ts'
import { PLACEMENT, type Placement } from './placements.ts'

export interface ClusterObjectsOptions
  extends
    Pick<ClusterPodsOptions, 'clusterName' | 'interfaceOf'>,
    Pick<ClusterPoliciesOptions, 'massRemoval'> {
  readonly clock: Clock
  readonly collections: readonly Collection[]
  readonly kept: KeptObjects | undefined
  /** `limits.peers`. */
  readonly peersMax: number
  readonly parsePolicy: ClusterPoliciesOptions['parse']
  /** Puts a change in force. `since`: when its oldest part was received, in milliseconds of `Clock.now()`. */
  readonly onChange: (change: ReceivedObjects, since: number) => void
  /** Called when removals of a kind start to be held, and when they have taken effect. */
  readonly onHold: (collection: Collection, isHolding: boolean) => void
}

/** Events that come within this time, in milliseconds, become one change. */
const BATCH_MS = 10
/** The pause between two slices of a long list, in milliseconds. */
const PAUSE_MS = 1

/** Counts of one collection. */
export interface CollectionCounts {
  readonly objects: number
  readonly faulty: number
  /** Policies in force only because a mass removal is held. */
  readonly held: number
}

export class ClusterObjects {
  readonly pods: ClusterPods
  readonly peers: ClusterPeers
  readonly #options: ClusterObjectsOptions
  readonly #namespaces: Namespaces
  readonly #policies = new Map<string, ClusterPolicies>()
  /** Kinds that were listed or kept, or that the server does not have or does not show. */
  readonly #settled = new Set<string>()
  #isComplete = false
  #batch: Timer | undefined
  /** When the first event of the batch came. */
  #since: number | undefined

  constructor(options: ClusterObjectsOptions) {
    const { collections, kept } = options
    this.#options = options
    this.#namespaces = new Namespaces(
      collections.some(({ kind }) => kind === 'Namespace'),
      kept,
    )
    this.pods = new ClusterPods({
      ...options,
      namespaces: this.#namespaces,
      onLook: () => this.#flush(),
    })
    this.peers = new ClusterPeers({ ...options, namespaces: this.#namespaces })
    for (const collection of collections) {
      if (isPolicy(collection)) this.#policies.set(collection.kind, this.#policiesOf(collection))
    }
  }

  /** True when endpoints are in force: every collection was listed once, or was kept. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  countsOf({ kind }: Collection): CollectionCounts {
    const policies = this.#policies.get(kind)
    if (policies !== undefined) {
      return { objects: policies.count, faulty: policies.faulty.size, held: policies.hold.held }
    }
    const counted = { Pod: this.pods, Peer: this.peers }[kind] ?? this.#namespaces
    return { objects: counted.count, faulty: 0, held: 0 }
  }

  /** The policies with faults, by the names of their objects. */
  *faulty(): Iterable<readonly [name: string, policy: FaultyPolicy]> {
    for (const { faulty } of this.#policies.values()) yield* faulty
  }

  /** The UID of a policy that the cluster has. */
  uidOf(name: string): string | undefined {
    return this.#policies.get(objectKind(name))?.uidOf(name)
  }

  /** Milliseconds until the held removals of a collection take effect. Undefined: none are held. */
  holdOf({ kind }: Collection): number | undefined {
    return this.#policies.get(kind)?.hold.remainingMs
  }

  /** Puts the kept objects in force. Call it once, before the first list. */
  restore(): void {
    const { kept, collections } = this.#options
    if (kept === undefined) return
    const readsPeers = collections.some(({ kind }) => kind === 'Peer')
    for (const [name, object] of kept.read()) {
      const kind = objectKind(name)
      if (kind === 'Peer' && !readsPeers) kept.keep(name, undefined)
      else this.#set(kind, name, object)
    }
    for (const name of kept.held) this.#policies.get(objectKind(name))?.remove(name)
    for (const { hold } of this.#policies.values()) hold.hold()
    // The daemon before may have ended between its first lists. Then its pods wait for this daemon's lists.
    if (kept.isComplete) for (const { kind } of collections) this.#settled.add(kind)
    // Nothing waits for this start, and the kernel's entries of peers that are missing would be removed.
    do this.#flush()
    while (this.peers.hasMore)
  }

  /**
   * Takes a whole collection, or all of it in one namespace. Every other object is gone, unless the list `hasGaps`: then an object can be
   * missing because it could not be read.
   */
  list(
    collection: Collection,
    namespace: string | undefined,
    objects: readonly KubernetesObject[],
    hasGaps = false,
  ): void {
    const present = new Set<string>()
    for (const object of objects) present.add(this.change(collection, object))
    if (hasGaps) return
    const start = objectName(collection.kind, namespace, '')
    for (const name of this.#namesOf(collection)) {
      if (name.startsWith(start) && !present.has(name)) this.#remove(collection, name)
    }
  }

  /** Takes a new or changed object. Returns its name. */
  change(collection: Collection, object: KubernetesObject): string {
    const { kind } = collection
    const { metadata } = object
    const name = objectName(kind, metadata.namespace, metadata.name)
    this.#set(kind, name, object)
    this.#schedule()
    return name
  }

  /** Takes the removal of an object. */
  remove(collection: Collection, { metadata }: KubernetesObject): void {
    this.#remove(collection, objectName(collection.kind, metadata.namespace, metadata.name))
  }

  /** Notes where the network plugin put a pod, and puts its endpoint in force if the pod is known. */
  place(placement: Placement): void {
    this.pods.place(placement)
    this.#flush()
  }

  /** Notes that the network plugin removes a pod. */
  displace(placement: Pick<Placement, 'namespace' | 'name' | 'uid'>): void {
    this.pods.displace(placement)
    this.#flush()
  }

  /** Notes that a collection was listed, or that the server does not have it or does not show it. */
  settle({ kind }: Collection): void {
    this.#settled.add(kind)
    this.#schedule()
  }

  /** Notes that the server does not have the kind any more, so that recent removals were not single ones. */
  kindGone({ kind }: Collection): void {
    this.#policies.get(kind)?.hold.hold()
  }

  /** Makes all held removals effective. Returns how many there were. */
  accept(): number {
    return [...this.#policies.values()].reduce((sum, { hold }) => sum + hold.accept(), 0)
  }

  stop(): void {
    this.#batch?.cancel()
    this.pods.stop()
    for (const { hold } of this.#policies.values()) hold.stop()
  }

  #policiesOf(collection: Collection): ClusterPolicies {
    return new ClusterPolicies({
      ...this.#options,
      collection,
      parse: this.#options.parsePolicy,
      onRemoved: () => this.#schedule(),
      onHold: (isHolding) => this.#options.onHold(collection, isHolding),
    })
  }

  #set(kind: string, name: string, object: KubernetesObject): void {
    if (kind === 'Pod') this.pods.set(name, object)
    else if (kind === 'Peer') this.peers.set(name, object)
    else if (kind === PLACEMENT) this.pods.restorePlacement(object)
    else if (kind === 'Namespace') this.#setNamespace(object)
    else this.#policies.get(kind)?.set(name, object)
  }

  #remove({ kind }: Collection, name: string): void {
    if (kind === 'Pod') this.pods.remove(name)
    else if (kind === 'Peer') this.peers.remove(name)
    else if (kind === 'Namespace') this.#removeNamespace(name.slice(namespaceObject('').length))
    else this.#policies.get(kind)?.remove(name)
    this.#schedule()
  }

  #setNamespace(object: KubernetesObject): void {
    if (!this.#namespaces.set(object)) return
    this.pods.namespaceChanged(object.metadata.name)
    this.peers.namespaceChanged(object.metadata.name)
  }

  /** Pods of a removed namespace keep its labels, because the pods are removed one by one. */
  #removeNamespace(name: string): void {
    const isUsed = this.pods.hasNamespace(name) || this.peers.hasNamespace(name)
    if (!isUsed) this.#namespaces.remove(name)
  }

  /** The names of the known objects of a collection, without policies that wait for their removal. */
  #namesOf({ kind }: Collection): readonly string[] {
    if (kind === 'Pod') return this.pods.names()
    if (kind === 'Peer') return this.peers.names()
    if (kind === 'Namespace') return this.#namespaces.names()
    return this.#policies.get(kind)?.names() ?? []
  }

  #schedule(delayMs = BATCH_MS): void {
    this.#since ??= this.#options.clock.now()
    this.#batch ??= this.#options.clock.after(delayMs, () => {
      this.#batch = undefined
      this.#flush()
    })
  }

  #flush(): void {
    const policies = new Map(
      [...this.#policies.values()].flatMap((each) => [...each.takeChanges()]),
    )
    const { clock, onChange, collections } = this.#options
    const since = this.#since ?? clock.now()
    this.#since = undefined
    const peers = this.peers.takeChanges()
    this.#isComplete ||=
      !this.peers.hasMore && collections.every(({ kind }) => this.#settled.has(kind))
    if (this.isComplete) this.#options.kept?.markComplete()
    const endpoints = this.isComplete ? this.pods.takeChanges() : new Map()
    if (policies.size + endpoints.size + peers.size > 0) {
      onChange({ policies, endpoints, peers }, since)
    }
    if (this.peers.hasMore) this.#schedule(PAUSE_MS)
  }
}

function isPolicy({ kind }: Collection): boolean {
  return kind !== 'Pod' && kind !== 'Peer' && kind !== 'Namespace'
}
