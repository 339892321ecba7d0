// ListedResources shows the resources in force to the admin API: each with its origin, its end, and a tag for its version. The
// tag is the ETag of the API. A version gets its tag when it is read for the first time, so resources that no client reads cost
// nothing. No version before a restart has the tag of one after it.

import type { Clock } from '../core/clock.ts'
import type { ListedResource, Resource, ResourceControl } from '../enforcement/resource-control.ts'
import { expiryOf, type ApiResource } from './api-resource.ts'

export interface ListedResourcesOptions {
  readonly clock: Clock
  readonly control: ResourceControl
  /** The resource of the admin API with this name. Every change replaces the object. */
  readonly own: (name: string) => ApiResource | undefined
}

export class ListedResources {
  readonly #options: ListedResourcesOptions
  /** Differs from the text of every process before. */
  readonly #start: string
  readonly #numbers = new WeakMap<object, number>()
  #last = 0
  /** How often the end of a resource changed. */
  ends = 0

  constructor(options: ListedResourcesOptions) {
    this.#options = options
    this.#start = Math.round(options.clock.wall()).toString(36)
  }

  *all(): Iterable<ListedResource> {
    for (const resource of this.#options.control.resources) yield this.#listed(resource)
  }

  find(name: string): ListedResource | undefined {
    const resource = this.#options.control.find(name)
    return resource && this.#listed(resource)
  }

  /** The tag of the whole list. */
  get tag(): string {
    return `"${this.#start}-all-${this.#options.control.changes + this.ends}"`
  }

  /** Returns the tag of the version of a resource, or undefined if there is no such resource. */
  tagOf(name: string): string | undefined {
    const { own, control } = this.#options
    const version = own(name) ?? control.find(name)
    if (version === undefined) return undefined
    const number = this.#numbers.get(version) ?? ++this.#last
    this.#numbers.set(version, number)
    return `"${this.#start}-${number}"`
  }

  #listed(resource: Resource): ListedResource {
    const { own, clock } = this.#options
    const mine = own(resource.name)
    const origin = mine === undefined ? 'file' : 'api'
    const expires = mine === undefined ? undefined : expiryOf(mine, clock)
    return { ...resource, origin, expires }
  }
}
