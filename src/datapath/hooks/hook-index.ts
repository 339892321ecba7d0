// HookIndex finds the endpoints that events of interfaces and cgroups may affect. The kernel sends events of interfaces but none
// of cgroups. So each look examines some of the cgroups, in rotation.

import type { EndpointId } from '../../core/ids.ts'
import type { Hook } from '../entries.ts'
import type { LinkItem } from './link-events.ts'

/** How many cgroups one look examines. With one look in 50 ms, up to 128 endpoints are all examined within 100 ms. */
const CGROUPS_PER_LOOK = 64

export type Side = 'ingress' | 'egress'

export class HookIndex {
  readonly #byInterface = new Map<string, Map<EndpointId, Side>>()
  #cgroups: EndpointId[] = []
  #next = 0

  /** Records that an endpoint waits for another hook, or begins or stops to wait. */
  replace(id: EndpointId, before: Hook | undefined, hook: Hook | undefined): void {
    if (before !== undefined) this.#remove(id, before)
    if (hook !== undefined) this.#add(id, hook)
  }

  /** Returns the side at which packets arrive on an interface for which an endpoint waits. */
  sideOf(name: string): Side | undefined {
    return this.#byInterface.get(name)?.values().next().value
  }

  /** Returns the endpoints to examine now. `ownerOf` returns the endpoint that has an interface index in the kernel. */
  suspects(
    events: readonly LinkItem[] | 'all',
    ownerOf: (ifindex: number) => EndpointId | undefined,
  ): ReadonlySet<EndpointId> {
    const suspects = new Set<EndpointId>()
    if (events === 'all') {
      for (const ids of this.#byInterface.values()) for (const id of ids.keys()) suspects.add(id)
    } else {
      for (const { ifindex, name } of events) {
        for (const id of this.#byInterface.get(name)?.keys() ?? []) suspects.add(id)
        const owner = ownerOf(ifindex)
        if (owner !== undefined) suspects.add(owner)
      }
    }
    const count = Math.min(CGROUPS_PER_LOOK, this.#cgroups.length)
    for (let i = 0; i < count; i++) {
      this.#next = (this.#next + 1) % this.#cgroups.length
      const id = this.#cgroups[this.#next]
      if (id !== undefined) suspects.add(id)
    }
    return suspects
  }

  #add(id: EndpointId, hook: Hook): void {
    if (hook.kind === 'cgroup') this.#cgroups.push(id)
    if (hook.kind !== 'interface') return
    const known = this.#byInterface.get(hook.name) ?? new Map<EndpointId, Side>()
    this.#byInterface.set(hook.name, known.set(id, hook.side))
  }

  #remove(id: EndpointId, hook: Hook): void {
    if (hook.kind === 'cgroup') this.#cgroups = this.#cgroups.filter((other) => other !== id)
    if (hook.kind !== 'interface') return
    const known = this.#byInterface.get(hook.name)
    known?.delete(id)
    if (known?.size === 0) this.#byInterface.delete(hook.name)
  }
}
