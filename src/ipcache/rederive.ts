// One pass over the prefixes after containers changed: first the containers inside them, shortest first, because labels flow down
// through them, then every host. The pass runs in slices, so that a million prefixes never stop the event loop. Rows that are made
// or changed meanwhile are right already, because they look for their container themselves. A change during the pass makes another
// one. When few containers changed, a row outside of them costs one comparison of prefixes.

import type { IpCache } from './ipcache.ts'

/** With more changed containers every row is derived, because comparing it with all of them costs as much. */
const ROOTS_MAX = 8

export class Rederive {
  readonly #ipcache: IpCache
  /** The containers that changed; empty: too many to compare with. */
  #roots: readonly number[] = []
  #containers: number[] = []
  #nextContainer = 0
  #nextRow = 0
  #active = false

  constructor(options: { readonly ipcache: IpCache }) {
    this.#ipcache = options.ipcache
  }

  get pending(): boolean {
    return this.#active || this.#ipcache.hasContainersChanged
  }

  /** Looks at `rows` rows at most; true when everything is up to date. */
  step(rows: number): boolean {
    if (!this.#active) {
      const changed = this.#ipcache.takeChangedContainers()
      if (changed.length === 0) return true
      this.#begin(changed)
    }
    let left = rows
    while (left > 0 && this.#nextContainer < this.#containers.length) {
      const row = this.#containers[this.#nextContainer++]
      if (row !== undefined) this.#rederiveContainer(row)
      left--
    }
    const { prefixes } = this.#ipcache
    for (; left > 0 && this.#nextRow <= prefixes.slots.high; left--) {
      const row = this.#nextRow++
      if (prefixes.users[row] === 0 || prefixes.canContain(row)) continue
      if (this.#isTouched(row)) this.#ipcache.rederiveRow(row)
    }
    if (this.#nextRow <= prefixes.slots.high) return false
    this.#active = false
    if (this.#ipcache.hasContainersChanged) return false
    this.#ipcache.freeRetired()
    return true
  }

  /** This pass carries on the changes that it makes to containers. Only a change from outside needs another pass. */
  #rederiveContainer(row: number): void {
    const changedBefore = this.#ipcache.changedContainers
    this.#ipcache.rederiveRow(row)
    this.#ipcache.keepChangedContainers(changedBefore)
  }

  #begin(changed: readonly number[]): void {
    const { prefixes } = this.#ipcache
    const roots = new Set(changed)
    this.#roots = roots.size > ROOTS_MAX ? [] : [...roots]
    this.#containers = []
    for (const row of prefixes.containers) if (this.#isTouched(row)) this.#containers.push(row)
    this.#containers.sort((a, b) => prefixes.lengths[a]! - prefixes.lengths[b]!)
    this.#nextContainer = 0
    this.#nextRow = 1
    this.#active = true
  }

  #isTouched(row: number): boolean {
    const roots = this.#roots
    if (roots.length === 0) return true
    const { prefixes } = this.#ipcache
    for (const root of roots) if (prefixes.isInside(row, root)) return true
    return false
  }
}
