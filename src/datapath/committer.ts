// The one writer of the datapath. Everyone else changes facts, rules or endpoints; `commit` gathers what
// differs from what the datapath has confirmed and makes it real in one go, in the order that leaves no
// hole: policy entries of new identities, prefixes, endpoints, then removals in reverse.
//
// What was refused stays on the list: rows keep the identity that is really in force, and the next commit
// tries again. A revision counts the commits that changed something.

import { identity, revision, type EndpointId, type Identity, type Revision } from '../core/ids.ts'
import type { LabelSets } from '../core/labels.ts'
import type { Allocator } from '../identity/allocator.ts'
import type { SelectorCache } from '../identity/selector-cache.ts'
import { HOST } from '../identity/reserved.ts'
import { ROW_REFUSED, type IpCache } from '../ipcache/ipcache.ts'
import type { CommitFailure, Datapath, EndpointEntry, PolicyEntry, PolicyKey } from './datapath.ts'
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
  #endpointUpserts: EndpointEntry[] = []
  #endpointRemovals: EndpointId[] = []
  /** Policy entries that were refused, to be tried again. */
  #retryUpserts: PolicyEntry[] = []
  #retryRemovals: PolicyKey[] = []
  readonly #refusedRows = new Set<number>()
  /** Identities that lack a policy entry, because it was refused or its map was full. */
  readonly #incomplete = new Set<Identity>()
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
    const endpoints = this.#endpointUpserts.length + this.#endpointRemovals.length
    const policies = this.#retryUpserts.length + this.#retryRemovals.length
    return this.#refusedRows.size + policies + endpoints
  }

  upsertEndpoint(endpoint: EndpointEntry): void {
    this.#endpointUpserts.push(endpoint)
  }

  removeEndpoint(endpoint: EndpointId): void {
    this.#endpointRemovals.push(endpoint)
  }

  /** Puts refused entries on the list again; call now and then. */
  retry(): void {
    for (const row of this.#refusedRows) this.#ipcache.markChanged(row)
  }

  /** Makes the datapath match. Returns what was refused; an empty list means all is in force. */
  commit(): readonly CommitFailure[] {
    this.#gatherRows()
    this.#gatherIdentities()
    const policy = this.#policyMaps.take()
    const policyUpserts = concat(this.#retryUpserts, policy.upserts)
    const policyRemovals = concat(this.#retryRemovals, policy.removals)
    const endpoints = this.#endpointUpserts.length + this.#endpointRemovals.length
    const count = policyUpserts.length + policyRemovals.length + endpoints
    if (count + this.#upserts.count + this.#removals.count === 0) {
      this.#labelSets.collect()
      return []
    }
    const failures = this.#datapath.commit({
      policyUpserts,
      prefixUpserts: this.#upserts,
      endpointUpserts: this.#endpointUpserts,
      endpointRemovals: this.#endpointRemovals,
      prefixRemovals: this.#removals,
      policyRemovals,
    })
    for (const entry of this.#retryUpserts) this.#incomplete.delete(entry.identity)
    this.#retryUpserts = refusedOf(failures, 'policy', 'upsert', policyUpserts)
    for (const entry of this.#retryUpserts) this.#incomplete.add(entry.identity)
    this.#retryRemovals = refusedOf(failures, 'policy', 'remove', policyRemovals)
    this.#endpointUpserts = refusedOf(failures, 'endpoint', 'upsert', this.#endpointUpserts)
    this.#endpointRemovals = refusedOf(failures, 'endpoint', 'remove', this.#endpointRemovals)
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
    return this.#incomplete.size === 0 || !this.#incomplete.has(prefixes.identityOf(row))
  }

  #gatherRows(): void {
    const { prefixes } = this.#ipcache
    this.#upserts.clear()
    this.#removals.clear()
    this.#upsertRows = []
    this.#removalRows = []
    for (const row of this.#ipcache.takeChanged()) {
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
      )
      if (wanted === 0) this.#removalRows.push(row)
      else this.#upsertRows.push(row)
    }
  }

  #gatherIdentities(): void {
    for (const id of this.#allocator.takeFresh()) {
      const set = this.#allocator.setOf(id)
      if (set === undefined) continue
      const selectors = this.#selectors.addIdentity(id, set)
      this.#policyMaps.addIdentity(id, selectors, this.#allocator.isSpare(id))
    }
    for (const row of this.#upsertRows)
      this.#policyMaps.need(this.#ipcache.prefixes.identityOf(row))
    for (const id of this.#allocator.takeUnused()) {
      const set = this.#allocator.setOf(id)
      this.#incomplete.delete(id)
      this.#policyMaps.removeIdentity(id, this.#selectors.selectorsOf(id))
      if (set !== undefined) this.#selectors.removeIdentity(id, set)
    }
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

function concat<T>(a: readonly T[], b: readonly T[]): readonly T[] {
  return a.length === 0 ? b : [...a, ...b]
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
