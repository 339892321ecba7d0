// Rederive passes over the prefixes after containers changed, and derives the rows inside them again. It takes the containers first, from
// the shortest prefix to the longest, because labels are inherited in this order. Then it takes the hosts. The pass runs in slices, so
// that a million prefixes never stop the event loop. A row that is added or changed between the slices is already right, because it
// finds its container itself. If another container changes during the pass, a second pass follows. When few containers changed, a row
// outside of them costs one comparison of prefixes per changed container.

import type { IpCache } from './ipcache.ts'

/** With more changed containers than this, every row is derived. To compare a row with all of them would cost as much. */
const ROOTS_MAX = 8

export class Rederive {
  readonly #ipcache: IpCache
  /** The containers that changed. Empty: there are more than ROOTS_MAX. */
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

  /** Handles at most `rows` rows. Returns true when all rows are up to date. */
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

  /** Derives a container. If its labels change, this pass also derives the rows inside it, so no second pass is needed. */
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
