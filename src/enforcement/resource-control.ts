// External resources: labels on addresses and prefixes that no client of this node has. They make facts only. Resources of
// files come as a whole list and are applied as the difference to the list before; an unchanged record costs one comparison.
// Resources of the admin API come one by one. The sources make sure that each name is one resource.

import type { Prefix } from '../core/ip.ts'
import { difference } from '../core/tables/list-difference.ts'
import { OWNER_RESOURCE } from '../ipcache/facts.ts'
import { ConfigFacts } from './config-facts.ts'
import type { CoreState } from './core-state.ts'

/** A resource as a source knows it. */
export interface Resource {
  readonly name: string
  readonly addresses: readonly Prefix[]
  readonly labels: readonly string[]
}

export class ResourceControl {
  readonly #facts: ConfigFacts
  /** In force, by name. */
  readonly #known = new Map<string, Resource>()
  /** Those of files, in their order. */
  #listed: readonly Resource[] = []
  #addresses = 0

  constructor(options: { readonly core: CoreState }) {
    this.#facts = new ConfigFacts(options)
  }

  /** In force. */
  get resources(): Iterable<Resource> {
    return this.#known.values()
  }

  get count(): number {
    return this.#known.size
  }

  /** Addresses and prefixes of all of them. */
  get addressCount(): number {
    return this.#addresses
  }

  /** Makes the resources of files exactly these; the caller then runs the transition. */
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

  /** Adds a resource or changes the one of its name; false: the table of facts is full. The caller then runs the transition. */
  set(resource: Resource): boolean {
    const { name, addresses, labels } = resource
    const before = this.#known.get(name)
    this.#known.set(name, resource)
    if (before !== undefined && sameMeaning(before, resource)) return true
    this.#addresses += addresses.length - (before?.addresses.length ?? 0)
    const wanted = addresses.map((prefix) => ({ prefix, labels }))
    return this.#facts.replace(OWNER_RESOURCE, name, wanted)
  }

  /** Takes a resource away; the caller then runs the transition. */
  remove(name: string): void {
    this.#addresses -= this.#known.get(name)?.addresses.length ?? 0
    this.#known.delete(name)
    this.#facts.replace(OWNER_RESOURCE, name, [])
  }
}

/** Whether two resources make the same facts. In another order they count as different, which costs a look and changes nothing. */
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
      /** Whether anything has to be brought into force. */
      readonly changed: boolean
      /** Wall-clock milliseconds; undefined: it has no end. */
      readonly expires: number | undefined
      /** Resolves when the resource is saved for restarts; rejects when saving fails. */
      readonly kept: Promise<void>
    }
  /** Each reason begins with the path of the fault. */
  | { readonly kind: 'invalid'; readonly reasons: readonly string[] }
  /** The resource contradicts another or passes a bound. Nothing has changed. */
  | { readonly kind: 'conflict'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string }

/** A resource in force, with its origin. */
export interface ListedResource extends Resource {
  readonly origin: 'file' | 'api'
  /** Wall-clock milliseconds; undefined: it has no end. */
  readonly expires: number | undefined
}
