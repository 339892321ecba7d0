// Which endpoints may be affected by what happened to interfaces and cgroups. Interfaces send news by
// netlink; cgroups send none, so a few of them are looked at each time, in turn.

import type { EndpointId } from '../../core/ids.ts'
import type { Posix } from '../../native/native.ts'
import type { Hook } from '../datapath.ts'

/** How many cgroups one look takes: all of them within 100 ms up to 128 endpoints, at one look in 50 ms. */
const CGROUPS_PER_LOOK = 64

export class HookIndex {
  readonly #posix: Posix
  readonly #socket: number
  readonly #byInterface = new Map<string, Set<EndpointId>>()
  #cgroups: EndpointId[] = []
  #next = 0

  constructor(posix: Posix) {
    this.#posix = posix
    this.#socket = posix.linkSocket()
  }

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

  /** Endpoints to look at now; `ownerOf` tells whose an interface index is in the kernel. */
  suspects(ownerOf: (ifindex: number) => EndpointId | undefined): ReadonlySet<EndpointId> {
    const suspects = new Set<EndpointId>()
    this.#addInterfaces(suspects, ownerOf)
    const count = Math.min(CGROUPS_PER_LOOK, this.#cgroups.length)
    for (let i = 0; i < count; i++) {
      this.#next = (this.#next + 1) % this.#cgroups.length
      const id = this.#cgroups[this.#next]
      if (id !== undefined) suspects.add(id)
    }
    return suspects
  }

  close(): void {
    if (this.#socket >= 0) this.#posix.closeFd(this.#socket)
  }

  #addInterfaces(
    suspects: Set<EndpointId>,
    ownerOf: (ifindex: number) => EndpointId | undefined,
  ): void {
    const news = this.#socket < 0 ? this.#socket : this.#posix.linkDrain(this.#socket)
    if (typeof news === 'number') {
      for (const ids of this.#byInterface.values()) for (const id of ids) suspects.add(id)
      return
    }
    for (const item of news) {
      if (typeof item === 'string') {
        for (const id of this.#byInterface.get(item) ?? []) suspects.add(id)
        continue
      }
      const owner = ownerOf(item)
      if (owner !== undefined) suspects.add(owner)
    }
  }
}
