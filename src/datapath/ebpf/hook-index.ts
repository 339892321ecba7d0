// Which endpoints may be affected by what happened to interfaces and cgroups. Interfaces send news; cgroups send
// none, so a few of them are looked at each time, in turn.

import type { EndpointId } from '../../core/ids.ts'
import type { Hook } from '../datapath.ts'
import type { LinkItem } from './link-news.ts'

/** How many cgroups one look takes: all of them within 100 ms up to 128 endpoints, at one look in 50 ms. */
const CGROUPS_PER_LOOK = 64

export class HookIndex {
  readonly #byInterface = new Map<string, Set<EndpointId>>()
  #cgroups: EndpointId[] = []
  #next = 0

  add(id: EndpointId, hook: Hook): void {
    if (hook.kind === 'cgroup') this.#cgroups.push(id)
    if (hook.kind !== 'interface') return
    const known = this.#byInterface.get(hook.name)
    if (known === undefined) this.#byInterface.set(hook.name, new Set([id]))
    else known.add(id)
  }

  remove(id: EndpointId, hook: Hook): void {
    if (hook.kind === 'cgroup') this.#cgroups = this.#cgroups.filter((other) => other !== id)
    if (hook.kind !== 'interface') return
    const known = this.#byInterface.get(hook.name)
    known?.delete(id)
    if (known?.size === 0) this.#byInterface.delete(hook.name)
  }

  /** Endpoints whose hook is the interface of that name. */
  byInterface(name: string): ReadonlySet<EndpointId> | undefined {
    return this.#byInterface.get(name)
  }

  /** Endpoints to look at now; `ownerOf` tells whose an interface index is in the kernel. */
  suspects(
    news: readonly LinkItem[] | 'all',
    ownerOf: (ifindex: number) => EndpointId | undefined,
  ): ReadonlySet<EndpointId> {
    const suspects = new Set<EndpointId>()
    if (news === 'all') {
      for (const ids of this.#byInterface.values()) for (const id of ids) suspects.add(id)
    } else {
      for (const { ifindex, name } of news) {
        for (const id of this.#byInterface.get(name) ?? []) suspects.add(id)
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
}
