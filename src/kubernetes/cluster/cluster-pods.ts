// Holds the pods of this node, and makes an endpoint of each pod. A removed pod goes at once. A pod whose interface does
// not exist yet is looked at again until it does.

import type { Clock, Timer } from '../../core/clock.ts'
import { formatPrefix, type Prefix } from '../../core/ip.ts'
import type { EndpointRecord } from '../../endpoints/file.ts'
import type { ReceivedItems } from '../../sources/files/given-items.ts'
import type { KeptObjects } from './kept-objects.ts'
import type { KubernetesObject } from '../reflector/objects.ts'
import type { Namespaces } from './namespaces.ts'
import { Placements, podObject, type Placement } from './placements.ts'
import {
  endpointOf,
  podDocument,
  readPod,
  type LeftOut,
  type Pod,
  type PodEndpoint,
} from './pods.ts'

export interface ClusterPodsOptions {
  readonly clock: Clock
  readonly clusterName: string
  readonly namespaces: Namespaces
  readonly kept: KeptObjects | undefined
  /** The interface of this node behind which an address is. Undefined while there is none. */
  readonly interfaceOf: (address: Prefix) => string | undefined
  /** Called when an interface may have appeared. */
  readonly onLook: () => void
}

/** How often, in milliseconds, namegate looks for the interface of a pod that has none. */
const INTERFACE_LOOK_MS = 250

export class ClusterPods {
  readonly #options: ClusterPodsOptions
  readonly #pods = new Map<string, Pod>()
  /** What namegate reads of each pod, as JSON. */
  readonly #texts = new Map<string, string>()
  readonly #leftOut = new Map<string, LeftOut>()
  /** Pods whose endpoint may differ from the one in force. */
  readonly #touched = new Set<string>()
  readonly #placements: Placements
  #look: Timer | undefined

  constructor(options: ClusterPodsOptions) {
    this.#options = options
    this.#placements = new Placements(options.kept)
  }

  get count(): number {
    return this.#pods.size
  }

  /** How many pods are not endpoints, by reason. */
  get leftOut(): ReadonlyMap<LeftOut, number> {
    const counts = new Map<LeftOut, number>()
    for (const why of this.#leftOut.values()) counts.set(why, (counts.get(why) ?? 0) + 1)
    return counts
  }

  names(): readonly string[] {
    return [...this.#pods.keys()]
  }

  set(name: string, object: KubernetesObject): void {
    const text = JSON.stringify(podDocument(object))
    if (this.#texts.get(name) === text) return
    this.#texts.set(name, text)
    this.#pods.set(name, readPod(object))
    this.#options.kept?.keep(name, text)
    this.#touched.add(name)
  }

  remove(name: string): void {
    const pod = this.#pods.get(name)
    if (pod === undefined) return
    this.#pods.delete(name)
    this.#texts.delete(name)
    this.#options.kept?.keep(name, undefined)
    this.#touched.add(name)
  }

  /** Notes that the labels of a namespace changed. */
  namespaceChanged(name: string): void {
    for (const [object, pod] of this.#pods) if (pod.namespace === name) this.#touched.add(object)
  }

  hasNamespace(name: string): boolean {
    return [...this.#pods.values()].some(({ namespace }) => namespace === name)
  }

  /** Notes where the network plugin put a pod. The pod may not be known yet. */
  place(placement: Placement): void {
    this.#touched.add(this.#placements.set(placement))
  }

  /** Notes that the network plugin removes a pod. */
  displace(placement: Pick<Placement, 'namespace' | 'name' | 'uid'>): void {
    if (this.#placements.remove(placement)) this.#touched.add(podObject(placement))
  }

  restorePlacement(object: KubernetesObject): void {
    this.#placements.restore(object)
  }

  /** Why a pod is no endpoint. Undefined if it is one. */
  whyNot(
    placement: Pick<Placement, 'namespace' | 'name' | 'uid'>,
  ): LeftOut | 'unknown' | undefined {
    const object = podObject(placement)
    const pod = this.#pods.get(object)
    if (pod === undefined || (placement.uid !== '' && placement.uid !== pod.uid)) return 'unknown'
    return this.#leftOut.get(object)
  }

  /** Returns the endpoints of the pods that changed since the last call. `undefined`: the endpoint is gone. */
  takeChanges(): ReadonlyMap<string, ReceivedItems<EndpointRecord> | undefined> {
    const changes = new Map<string, ReceivedItems<EndpointRecord> | undefined>()
    for (const name of this.#touched) {
      this.#leftOut.delete(name)
      const pod = this.#pods.get(name)
      const made = pod && this.#endpointOf(pod, name)
      if (made?.kind === 'left-out') this.#leftOut.set(name, made.why)
      changes.set(name, made?.kind === 'endpoint' ? received(made) : undefined)
    }
    this.#touched.clear()
    this.#lookForInterfaces()
    return changes
  }

  stop(): void {
    this.#look?.cancel()
  }

  #endpointOf(pod: Pod, object: string): PodEndpoint {
    const { clusterName, interfaceOf, namespaces } = this.#options
    const namespaceLabels = namespaces.labelsOf(pod.namespace)
    const placement = this.#placements.of(object, pod.uid)
    return endpointOf(pod, { placement, namespaceLabels, clusterName, interfaceOf }, object)
  }

  #lookForInterfaces(): void {
    if (this.#look !== undefined || !this.#isAnyWaiting()) return
    this.#look = this.#options.clock.after(INTERFACE_LOOK_MS, () => {
      this.#look = undefined
      for (const [name, why] of this.#leftOut) if (why === 'no-interface') this.#touched.add(name)
      this.#options.onLook()
    })
  }

  #isAnyWaiting(): boolean {
    for (const why of this.#leftOut.values()) if (why === 'no-interface') return true
    return false
  }
}

function received({
  record,
  faults,
}: Extract<PodEndpoint, { kind: 'endpoint' }>): ReceivedItems<EndpointRecord> {
  const { name, addresses, labels, ports, hook, uid } = record
  const digest = JSON.stringify([name, addresses.map(formatPrefix), labels, ports, hook, uid])
  return { digest, items: [record], faults }
}
