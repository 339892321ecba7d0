// Where the network plugin put the pods of this node, as namegate-cni reports it. A placement is known before the API server has the
// address of the pod, so a pod that has one is enforced from its first packet. Placements are kept over restarts.

import { objectName } from '../../core/object-names.ts'
import { listAt, textAt } from './fields.ts'
import type { KeptObjects } from './kept-objects.ts'
import type { KubernetesObject } from '../reflector/objects.ts'

/** Where a pod is. */
export interface Placement {
  readonly namespace: string
  readonly name: string
  /** Empty if the network plugin does not know it. Then the placement is for any pod of this name. */
  readonly uid: string
  /** The host side of the pod's veth. */
  readonly interface: string
  /** Addresses without prefix lengths. */
  readonly addresses: readonly string[]
}

/** The kind of the kept objects. No API has this kind. */
export const PLACEMENT = 'Placement'

/** In kept texts, a placement whose uid is empty has this one, because every object has a uid. */
const ANY_UID = 'any'

export class Placements {
  readonly #kept: KeptObjects | undefined
  /** By the name of the pod's object. */
  readonly #all = new Map<string, Placement>()

  constructor(kept: KeptObjects | undefined) {
    this.#kept = kept
  }

  /** Returns the placement of a pod. A placement of an earlier pod of the same name does not count. */
  of(pod: string, uid: string): Placement | undefined {
    const found = this.#all.get(pod)
    return found !== undefined && (found.uid === '' || found.uid === uid) ? found : undefined
  }

  /** Returns the name of the pod's object. */
  set(placement: Placement): string {
    const { namespace, name, uid, ...spec } = placement
    const pod = podObject(placement)
    this.#all.set(pod, placement)
    const metadata = { namespace, name, uid: uid === '' ? ANY_UID : uid }
    this.#keep(placement, JSON.stringify({ metadata, spec }))
    return pod
  }

  /** Removes the placement of a pod, unless a later pod of this name has taken its place. Returns true if there was one. */
  remove(placement: Pick<Placement, 'namespace' | 'name' | 'uid'>): boolean {
    const pod = podObject(placement)
    const { uid } = placement
    const found = this.#all.get(pod)
    if (found === undefined || (uid !== '' && found.uid !== '' && found.uid !== uid)) return false
    this.#all.delete(pod)
    this.#keep(placement, undefined)
    return true
  }

  /** Takes a kept placement. */
  restore({ metadata, spec }: KubernetesObject): void {
    const { namespace = '', name, uid } = metadata
    const addresses = listAt(spec, 'addresses').filter((each) => typeof each === 'string')
    const place = textAt(spec, 'interface') ?? ''
    if (place === '' || addresses.length === 0) return
    const found = { namespace, name, uid: uid === ANY_UID ? '' : uid, interface: place, addresses }
    this.#all.set(podObject(found), found)
  }

  #keep(
    { namespace, name }: Pick<Placement, 'namespace' | 'name'>,
    text: string | undefined,
  ): void {
    this.#kept?.keep(objectName(PLACEMENT, namespace, name), text)
  }
}

export function podObject({ namespace, name }: Pick<Placement, 'namespace' | 'name'>): string {
  return objectName('Pod', namespace, name)
}
