// ResourceControl turns resources into facts. A resource gives labels to addresses and prefixes that no endpoint of this node has. The
// resource files deliver their whole list. ResourceControl applies the difference to the list before, and an unchanged record costs
// one comparison. The admin API sets and removes single resources. The sources make sure that each name belongs to one resource. A second
// ResourceControl has the peers, which are pods of other nodes.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import { difference } from '../core/tables/list-difference.ts'
import { OWNER_RESOURCE, type OWNER_PEER } from '../ipcache/facts.ts'
import { ConfigFacts } from './config-facts.ts'
import type { CoreState } from './core-state.ts'

/** A resource as a source describes it. */
export interface Resource {
  readonly name: string
  readonly addresses: readonly Prefix[]
  readonly labels: readonly string[]
}

export class ResourceControl {
  readonly #facts: ConfigFacts
  readonly #owner: number
  /** The resources in force, by name. */
  readonly #known = new Map<string, Resource>()
  /** The resources of the files, in the order of the files. */
  #listed: readonly Resource[] = []
  #addresses = 0
  #changes = 0

  /** `owner`: the kind of the facts. */
  constructor({
    core,
    owner = OWNER_RESOURCE,
  }: {
    readonly core: CoreState
    readonly owner?: typeof OWNER_RESOURCE | typeof OWNER_PEER
  }) {
    this.#facts = new ConfigFacts({ core })
    this.#owner = owner
  }

  /** The resources in force. */
  get resources(): Iterable<Resource> {
    return this.#known.values()
  }

  get count(): number {
    return this.#known.size
  }

  /** How many resources were set or removed since the start. */
  get changes(): number {
    return this.#changes
  }

  find(name: string): Resource | undefined {
    return this.#known.get(name)
  }

  /** How many addresses and prefixes all resources have together. */
  get addressCount(): number {
    return this.#addresses
  }

  /** Makes the resources of the files equal to `listed`. The caller then runs the transition. */
  apply(listed: readonly Resource[]): void {
    const { before, after } = difference(this.#listed, listed)
    this.#listed = listed
    const gone = new Set(before.map(({ name }) => name))
    for (const resource of after) {
      gone.delete(resource.name)
      this.set(resource)
    }
    for (const name of gone) this.remove(name)
  }

  /** Adds or replaces the resource of a name. Returns false if the table of facts is full. The caller then runs the transition. */
  set(resource: Resource): boolean {
    const { name, addresses, labels } = resource
    const before = this.#known.get(name)
    this.#known.set(name, resource)
    this.#changes++
    if (before !== undefined && sameMeaning(before, resource)) return true
    this.#addresses += addresses.length - (before?.addresses.length ?? 0)
    const wanted = addresses.map((prefix) => ({ prefix, labels }))
    return this.#facts.replace(this.#owner, name, wanted)
  }

  /** Removes a resource. The caller then runs the transition. */
  remove(name: string): void {
    this.#addresses -= this.#known.get(name)?.addresses.length ?? 0
    this.#known.delete(name)
    this.#changes++
    this.#facts.replace(this.#owner, name, [])
  }
}

/** True if two resources make the same facts. A different order returns false, which only costs a comparison of the facts. */
function sameMeaning(a: Resource, b: Resource): boolean {
  return sameList(a.labels, b.labels) && sameList(a.addresses, b.addresses, samePrefix)
}

function sameList<T>(
  a: readonly T[],
  b: readonly T[],
  same: (a: T, b: T) => boolean = (left, right) => left === right,
): boolean {
  if (a === b) return true
  return (
    a.length === b.length &&
    a.every((item, i) => {
      const other = b[i]
      return other !== undefined && same(item, other)
    })
  )
}

function samePrefix(a: Prefix, b: Prefix): boolean {
  if (a.family !== b.family || a.length !== b.length) return false
  return a.octets.every((octet, i) => octet === b.octets[i])
}

/** The result of setting or removing a resource at run time. */
export type ResourceOutcome =
  | {
      readonly kind: 'ok'
      /** True if the caller has to run the transition. */
      readonly changed: boolean
      /** The end of the resource in wall-clock milliseconds; undefined: no end. */
      readonly expires: number | undefined
      /** Resolves when the resource is saved for restarts; rejects when saving fails. */
      readonly kept: Promise<void>
    }
  /** Each reason begins with the path of the faulty field. */
  | { readonly kind: 'invalid'; readonly reasons: readonly string[] }
  /** The resource contradicts another resource or exceeds a bound. Nothing has changed. `position`: the other resource in its file. */
  | { readonly kind: 'conflict'; readonly reason: string; readonly position?: Position | undefined }
  | { readonly kind: 'unknown'; readonly reason: string }

/** A resource in force, with its origin. */
export interface ListedResource extends Resource {
  readonly origin: 'file' | 'api'
  /** The end of the resource in wall-clock milliseconds; undefined: no end. */
  readonly expires: number | undefined
}
