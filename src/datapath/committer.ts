// The one writer of the datapath. Everyone else changes facts, rules or endpoints; `commit` gathers what
// differs from what the datapath has confirmed and makes it real in one go, in the order that leaves no
// hole: policy entries of new identities, prefixes, endpoints, then removals in reverse.
//
// What was refused stays on the list unless it is decided anew: rows keep the identity that is really in
// force until `retry`, policy and endpoints are tried again by the next commit. A revision counts the
// commits that changed something.

import { identity, revision, type EndpointId, type Identity, type Revision } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import type { LabelSets } from '../core/labels.ts'
import type { Allocator } from '../identity/allocator.ts'
import type { SelectorCache } from '../identity/selector-cache.ts'
import { HOST } from '../identity/reserved.ts'
import { ROW_CHANGED, ROW_REFUSED, type IpCache } from '../ipcache/ipcache.ts'
import type { Changes, CommitFailure, Datapath, EndpointEntry } from './datapath.ts'
import type { PolicyMaps } from './policy-maps.ts'
import { PrefixBatch } from './prefix-batch.ts'

export interface CommitterOptions {
  readonly datapath: Datapath
  readonly ipcache: IpCache
  readonly allocator: Allocator
  readonly selectors: SelectorCache
  readonly policyMaps: PolicyMaps
  readonly labelSets: LabelSets
}

export class Committer {
  readonly #datapath: Datapath
  readonly #ipcache: IpCache
  readonly #allocator: Allocator
  readonly #selectors: SelectorCache
  readonly #policyMaps: PolicyMaps
  readonly #labelSets: LabelSets
  readonly #upserts = new PrefixBatch()
  readonly #removals = new PrefixBatch()
  #upsertRows: number[] = []
  #removalRows: number[] = []
  readonly #endpointUpserts = new Map<EndpointId, EndpointEntry>()
  readonly #endpointRemovals = new Set<EndpointId>()
  readonly #refusedRows = new Set<number>()
  /** Entries of policy and endpoints that the last commit could not place. */
  #refusedOthers = 0
  /** Identities that lack a policy entry because it was refused. */
  #incomplete = new Set<Identity>()
  #revision = 0
  #failures = 0

  constructor(options: CommitterOptions) {
    this.#datapath = options.datapath
    this.#ipcache = options.ipcache
    this.#allocator = options.allocator
    this.#selectors = options.selectors
    this.#policyMaps = options.policyMaps
    this.#labelSets = options.labelSets
  }

  /** The last revision that the datapath has confirmed, refusals apart. */
  get revision(): Revision {
    return revision(this.#revision)
  }

  /** Entries refused since the start. */
  get failures(): number {
    return this.#failures
  }

  /** Entries that the datapath refuses to take at present. */
  get refused(): number {
    return this.#refusedRows.size + this.#refusedOthers
  }

  upsertEndpoint(endpoint: EndpointEntry): void {
    this.#endpointUpserts.set(endpoint.id, endpoint)
  }

  removeEndpoint(endpoint: EndpointId): void {
    this.#endpointUpserts.delete(endpoint)
    this.#endpointRemovals.add(endpoint)
  }

  /** Tries again what was refused, found no room or lacks labels for want of numbers; call now and then. */
  retry(): void {
    for (const row of this.#refusedRows) this.#ipcache.markChanged(row)
    this.#policyMaps.retry()
    this.#ipcache.heal()
  }

  /** Makes the datapath match. Returns what was refused; an empty list means all is in force. */
  commit(): readonly CommitFailure[] {
    this.#gatherRows()
    this.#gatherIdentities()
    const policy = this.#policyMaps.take()
    const endpoints = this.#endpointUpserts.size + this.#endpointRemovals.size
    const count = policy.upserts.length + policy.removals.length + endpoints
    if (count + this.#upserts.count + this.#removals.count === 0) {
      this.#labelSets.collect()
      return []
    }
    const changes = {
      policyUpserts: policy.upserts,
      prefixUpserts: this.#upserts,
      endpointUpserts: [...this.#endpointUpserts.values()],
      endpointRemovals: [...this.#endpointRemovals],
      prefixRemovals: this.#removals,
      policyRemovals: policy.removals,
    }
    const failures = this.#datapath.commit(changes)
    invariant(failures !== undefined, 'the datapath applies commits at once')
    const upserts = refusedOf(failures, 'policy', 'upsert', policy.upserts)
    const removals = refusedOf(failures, 'policy', 'remove', policy.removals)
    this.#policyMaps.putBack(upserts, removals)
    this.#incomplete = new Set(upserts.map((entry) => entry.identity))
    this.#refusedOthers =
      upserts.length + removals.length + this.#settleEndpoints(failures, changes)
    this.#settleRows(failures)
    this.#failures += failures.length
    this.#revision++
    this.#labelSets.collect()
    return failures
  }

  /** Whether the entry of an address that was just learned is in force as wanted. */
  isApplied(row: number): boolean {
    const { prefixes } = this.#ipcache
    if (prefixes.wanted[row] !== prefixes.applied[row]) return false
    if (prefixes.addressClass[row] !== prefixes.appliedClass[row]) return false
    const id = prefixes.identityOf(row)
    return !this.#incomplete.has(id) && this.#policyMaps.isComplete(id)
  }

  #gatherRows(): void {
    const { prefixes } = this.#ipcache
    this.#upserts.clear()
    this.#removals.clear()
    this.#upsertRows = []
    this.#removalRows = []
    for (const row of this.#ipcache.takeChanged()) {
      prefixes.flags[row]! &= ~ROW_CHANGED
      const wanted = identity(prefixes.wanted[row]!)
      const addressClass = identity(prefixes.addressClass[row]!)
      const inForce =
        prefixes.applied[row] === wanted && prefixes.appliedClass[row] === addressClass
      if (inForce || (wanted === 0 && prefixes.applied[row] === 0)) {
        this.#refusedRows.delete(row)
        prefixes.flags[row]! &= ~ROW_REFUSED
        this.#ipcache.freeIfIdle(row)
        continue
      }
      const batch = wanted === 0 ? this.#removals : this.#upserts
      batch.add(
        prefixes.family(row),
        prefixes.octets,
        row * 16,
        prefixes.lengths[row]!,
        wanted,
        addressClass,
        prefixes.scoped.scope[row],
      )
      if (wanted === 0) this.#removalRows.push(row)
      else this.#upsertRows.push(row)
    }
  }

  #gatherIdentities(): void {
    for (const id of this.#allocator.takeFresh()) {
      const set = this.#allocator.setOf(id)
      if (set === undefined) continue
      this.#policyMaps.addIdentity(id, this.#selectors.addIdentity(id, set))
    }
    for (const row of this.#upsertRows) {
      this.#policyMaps.need(this.#ipcache.prefixes.identityOf(row))
    }
    for (const id of this.#allocator.takeUnused()) {
      const set = this.#allocator.setOf(id)
      this.#policyMaps.removeIdentity(id, this.#selectors.selectorsOf(id))
      if (set !== undefined) this.#selectors.removeIdentity(id, set)
    }
  }

  /** Forgets endpoint changes that were taken; returns how many were refused and stay listed. */
  #settleEndpoints(failures: readonly CommitFailure[], changes: Changes): number {
    const upserts = refusedOf(failures, 'endpoint', 'upsert', changes.endpointUpserts)
    const removals = refusedOf(failures, 'endpoint', 'remove', changes.endpointRemovals)
    this.#endpointUpserts.clear()
    this.#endpointRemovals.clear()
    for (const entry of upserts) this.#endpointUpserts.set(entry.id, entry)
    for (const id of removals) this.#endpointRemovals.add(id)
    return upserts.length + removals.length
  }

  #settleRows(failures: readonly CommitFailure[]): void {
    const refusedUpserts = indexesOf(failures, 'upsert')
    const refusedRemovals = indexesOf(failures, 'remove')
    this.#upsertRows.forEach((row, i) => this.#settle(row, !refusedUpserts.has(i)))
    this.#removalRows.forEach((row, i) => this.#settle(row, !refusedRemovals.has(i)))
  }

  #settle(row: number, applied: boolean): void {
    const { prefixes } = this.#ipcache
    if (!applied) {
      this.#refusedRows.add(row)
      prefixes.flags[row]! |= ROW_REFUSED
      return
    }
    this.#refusedRows.delete(row)
    prefixes.flags[row]! &= ~ROW_REFUSED
    const before = identity(prefixes.applied[row]!)
    const wanted = identity(prefixes.wanted[row]!)
    if (isCounted(wanted)) this.#allocator.retain(wanted)
    prefixes.applied[row] = wanted
    prefixes.appliedClass[row] = prefixes.addressClass[row]!
    if (isCounted(before)) this.#allocator.release(before)
    this.#ipcache.freeIfIdle(row)
  }
}

function isCounted(id: Identity): boolean {
  return id !== 0 && id !== HOST
}

function indexesOf(failures: readonly CommitFailure[], action: 'upsert' | 'remove'): Set<number> {
  const indexes = new Set<number>()
  for (const failure of failures) {
    if (failure.section === 'prefix' && failure.action === action) indexes.add(failure.index)
  }
  return indexes
}

function refusedOf<T>(
  failures: readonly CommitFailure[],
  section: 'policy' | 'endpoint',
  action: 'upsert' | 'remove',
  list: readonly T[],
): T[] {
  if (failures.length === 0) return []
  const refused: T[] = []
  for (const failure of failures) {
    const item = list[failure.index]
    const mine = failure.section === section && failure.action === action
    if (mine && item !== undefined) refused.push(item)
  }
  return refused
}
