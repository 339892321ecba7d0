// Endpoints to attach, change or remove, until a commit takes them. A refused endpoint is listed again and goes with every commit until the
// datapath takes it or it is decided anew.

import type { EndpointId } from '../core/ids.ts'
import type { CommitFailure, EndpointEntry } from './entries.ts'
import { refusedOf } from './refused.ts'

interface EndpointTurn {
  readonly upserts: readonly EndpointEntry[]
  readonly removals: readonly EndpointId[]
}

const NOTHING: EndpointTurn = { upserts: [], removals: [] }

export class EndpointChanges {
  #upserts = new Map<EndpointId, EndpointEntry>()
  #removals = new Set<EndpointId>()
  /** What a commit took and that is not settled yet. */
  #underWay: EndpointTurn = NOTHING
  #underWayUpserts = new Map<EndpointId, EndpointEntry>()
  /** Of the last commit. */
  readonly #refused = new Set<EndpointId>()

  upsert(endpoint: EndpointEntry): void {
    this.#upserts.set(endpoint.id, endpoint)
  }

  remove(endpoint: EndpointId): void {
    this.#upserts.delete(endpoint)
    this.#removals.add(endpoint)
  }

  /** Hands over what is to be done, until `settle`. */
  take(): EndpointTurn {
    if (this.#upserts.size === 0 && this.#removals.size === 0) return NOTHING
    this.#underWay = { upserts: [...this.#upserts.values()], removals: [...this.#removals] }
    this.#underWayUpserts = this.#upserts
    this.#upserts = new Map()
    this.#removals = new Set()
    return this.#underWay
  }

  /** The commit ended; returns how many were refused and stay listed. */
  settle(failures: readonly CommitFailure[]): number {
    if (this.#underWay === NOTHING) return 0
    const upserts = refusedOf(failures, 'endpoint', 'upsert', this.#underWay.upserts)
    const removals = refusedOf(failures, 'endpoint', 'remove', this.#underWay.removals)
    this.#underWay = NOTHING
    this.#underWayUpserts = new Map()
    this.#refused.clear()
    for (const entry of upserts) {
      this.#refused.add(entry.id)
      const isDecided = this.#upserts.has(entry.id) || this.#removals.has(entry.id)
      if (!isDecided) this.#upserts.set(entry.id, entry)
    }
    for (const id of removals) this.#removals.add(id)
    return upserts.length + removals.length
  }

  /** Whether the endpoint is still to be put in force, and was not refused. */
  isPending(endpoint: EndpointId): boolean {
    if (this.#upserts.size + this.#underWayUpserts.size === 0) return false
    if (this.#refused.has(endpoint)) return false
    return this.#upserts.has(endpoint) || this.#underWayUpserts.has(endpoint)
  }
}
