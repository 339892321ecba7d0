// EndpointChanges lists the endpoints to attach, change or remove. The committer calls `gather` for a commit, and `settle` when the commit
// has ended. `settle` lists refused endpoints again. So every later commit tries them, until the datapath takes them or a caller
// changes them.

import type { EndpointId } from '../core/ids.ts'
import { refusedOf, type CommitResult, type EndpointEntry } from './entries.ts'

const NO_ENTRIES: readonly EndpointEntry[] = []
const NO_ENDPOINTS: readonly EndpointId[] = []

export class EndpointChanges {
  /** True if `gather` will find something. */
  hasChanges = false
  /** Endpoints that the commit under way attaches or changes, from `gather` to `settle`. */
  upserts = NO_ENTRIES
  /** Endpoints that the commit under way removes, from `gather` to `settle`. */
  removals = NO_ENDPOINTS
  /** How many endpoints the last commit could not write, because the datapath refused them. */
  refused = 0
  #upserts = new Map<EndpointId, EndpointEntry>()
  #removals = new Set<EndpointId>()
  #underWay = new Map<EndpointId, EndpointEntry>()
  readonly #refusedUpserts = new Set<EndpointId>()

  upsert(endpoint: EndpointEntry): void {
    this.hasChanges = true
    this.#upserts.set(endpoint.id, endpoint)
  }

  remove(endpoint: EndpointId): void {
    this.hasChanges = true
    this.#upserts.delete(endpoint)
    this.#removals.add(endpoint)
  }

  get count(): number {
    return this.upserts.length + this.removals.length
  }

  /** Moves all listed changes to the commit. */
  gather(): void {
    this.upserts = [...this.#upserts.values()]
    this.removals = [...this.#removals]
    this.#underWay = this.#upserts
    this.#upserts = new Map()
    this.#removals = new Set()
    this.hasChanges = false
  }

  /** Notes the result of a commit. Lists refused endpoints again, except those that a caller changed during the commit. */
  settle(failures: CommitResult): void {
    const upserts = refusedOf(failures, 'endpoint', 'upsert', this.upserts)
    const removals = refusedOf(failures, 'endpoint', 'remove', this.removals)
    this.upserts = NO_ENTRIES
    this.removals = NO_ENDPOINTS
    this.#underWay = new Map()
    this.#refusedUpserts.clear()
    for (const entry of upserts) {
      this.#refusedUpserts.add(entry.id)
      const isDecided = this.#upserts.has(entry.id) || this.#removals.has(entry.id)
      if (!isDecided) this.#upserts.set(entry.id, entry)
    }
    for (const id of removals) this.#removals.add(id)
    this.refused = upserts.length + removals.length
    this.hasChanges ||= this.refused > 0
  }

  /** True if the endpoint waits for a commit or is part of the commit under way. False if its last upsert was refused. */
  isPending(endpoint: EndpointId): boolean {
    if (this.#refusedUpserts.has(endpoint)) return false
    return this.#upserts.has(endpoint) || this.#underWay.has(endpoint)
  }
}
