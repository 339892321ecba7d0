// One pass over all prefixes after a container changed: first the containers, shortest first, because
// labels flow down through them, then every host. Runs in slices so that a million prefixes never stop
// the event loop; rows made or changed meanwhile are right already, since they look for their container
// themselves. A change during the pass starts it again.

import type { IpCache } from './ipcache.ts'

export class Rederive {
  readonly #ipcache: IpCache
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

  /** Derives at most `rows` rows; true when everything is up to date. */
  step(rows: number): boolean {
    if (!this.#active) {
      if (!this.#ipcache.takeContainersChanged()) return true
      this.#begin()
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
      if (prefixes.users[row] !== 0 && !prefixes.canContain(row)) this.#ipcache.rederiveRow(row)
    }
    if (this.#nextRow <= prefixes.slots.high) return false
    this.#active = false
    if (this.#ipcache.hasContainersChanged) return false
    this.#ipcache.freeRetired()
    return true
  }

  /** What a container changes here, this very pass carries on; only a change from outside asks for another. */
  #rederiveContainer(row: number): void {
    const changedBefore = this.#ipcache.hasContainersChanged
    this.#ipcache.rederiveRow(row)
    if (!changedBefore) this.#ipcache.takeContainersChanged()
  }

  #begin(): void {
    const { prefixes } = this.#ipcache
    this.#containers = [...prefixes.containers]
    this.#containers.sort((a, b) => prefixes.lengths[a]! - prefixes.lengths[b]!)
    this.#nextContainer = 0
    this.#nextRow = 1
    this.#active = true
  }
}
