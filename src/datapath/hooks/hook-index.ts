// Finds the endpoints that events of interfaces and cgroups may affect. The kernel sends events of interfaces. It sends none of cgroups, so
// each look takes a few of them, in turn.

import type { EndpointId } from '../../core/ids.ts'
import type { Hook } from '../entries.ts'
import type { LinkItem } from './link-events.ts'

/** How many cgroups one look takes: all of them within 100 ms up to 128 endpoints, at one look in 50 ms. */
const CGROUPS_PER_LOOK = 64

export type Side = 'ingress' | 'egress'

export class HookIndex {
  readonly #byInterface = new Map<string, Map<EndpointId, Side>>()
  #cgroups: EndpointId[] = []
  #next = 0

  /** An endpoint waits for another hook than before, or begins or ends to wait. */
  replace(id: EndpointId, before: Hook | undefined, hook: Hook | undefined): void {
    if (before !== undefined) this.#remove(id, before)
    if (hook !== undefined) this.#add(id, hook)
  }

  /** Where packets come in of an interface that an endpoint waits for. */
  sideOf(name: string): Side | undefined {
    return this.#byInterface.get(name)?.values().next().value
  }

  /** Endpoints to look at now; `ownerOf` tells whose an interface index is in the kernel. */
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
