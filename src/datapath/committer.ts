// Committer is the only component that writes to the datapath. Other components change facts, rules or endpoints. `commit` collects all
// that differs from what the datapath has confirmed, and hands it to the datapath in an order that leaves no hole. First come the policy
// entries of new identities, then prefixes, then endpoints. The removals follow in the reverse order.
//
// The memory and eBPF datapaths have applied a commit when `commit` returns. The nftables datapath takes longer. While it works on one
// commit, Committer collects later changes, and starts the next commit by itself. A revision counts the commits that changed something:
// `revision` is in force, `desired` will contain all changes for which `commit` was called.
//
// The datapath can refuse entries. A refused prefix keeps the identity that is in force, until `retry` lists the prefix again. Refused
// policy entries and endpoints are part of every later commit, until the datapath takes them or a component changes them.

import type { Clock } from '../core/clock.ts'
import { identity, revision, type EndpointId, type Identity, type Revision } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import type { LabelSets } from '../core/labels.ts'
import type { Allocator } from '../identity/allocator.ts'
import type { SelectorCache } from '../identity/selector-cache.ts'
import { ANY_IDENTITY } from '../identity/reserved.ts'
import { ROW_CHANGED, ROW_UNDER_WAY, type IpCache } from '../ipcache/ipcache.ts'
import type { Changes, CommitFailure, CommitResult, EndpointEntry } from './entries.ts'
import type { Datapath } from './datapath.ts'
import { CommitWatch } from './commit-watch.ts'
import { EndpointChanges } from './endpoint-changes.ts'
import type { InheritedEntries } from './inherited-entries.ts'
import type { PolicyChanges } from './policy-changes.ts'
import type { PolicyMaps } from './policy-maps.ts'
import { PrefixChanges } from './prefix-changes.ts'

export interface CommitterOptions {
  readonly clock: Clock
  readonly datapath: Datapath
  readonly ipcache: IpCache
  readonly allocator: Allocator
  readonly selectors: SelectorCache
  readonly policyMaps: PolicyMaps
  readonly labelSets: LabelSets
  /** Prefix entries that an earlier daemon left in the datapath. Absent: none. */
  readonly inherited?: InheritedEntries
  /** Called with newly numbered identities, before the datapath has an entry with such a number. */
  readonly onNumbers?: ((allocated: readonly Identity[]) => void) | undefined
}

/** How many degraded prefixes (with too few labels) one `retry` looks at. */
const HEALED_PER_RETRY = 4096
const NONE: readonly CommitFailure[] = []

/** Changes of one kind. `gather` moves them into a commit. `settle` notes the result when the commit has ended. */
type Part = Pick<PrefixChanges, 'count' | 'gather' | 'settle'>

export class Committer {
  readonly #options: CommitterOptions
  readonly #prefixes: PrefixChanges
  readonly #policy: PolicyChanges
  readonly #endpoints = new EndpointChanges()
  /** The kinds of changes in the present commit. Most commits have prefixes only. */
  readonly #parts: Part[] = []
  #revision = 0
  #failures = 0
  #lastRefused: CommitFailure | undefined
  readonly #watch: CommitWatch
  /** True while the commit under way comes from `commitExtra`. */
  #isExtra = false
  /** True if another commit has to follow the commit under way. */
  #again = false
  /** Waiting calls of `commitExtra`. Each function makes its changes just before they are written. */
  #extra: (() => Changes)[] = []
  readonly #listeners: (() => void)[] = []

  constructor(options: CommitterOptions) {
    this.#options = options
    this.#prefixes = new PrefixChanges(options)
    this.#policy = options.policyMaps.changes
    this.#watch = new CommitWatch(options)
    options.datapath.onCommitted((result) => this.#ended(result))
  }

  /** The last revision that the datapath confirmed. It counts commits with refused entries too. */
  get revision(): Revision {
    return revision(this.#revision)
  }

  /** The revision that contains every change for which `commit` was called so far. */
  get desired(): Revision {
    if (!this.#watch.isUnderWay) return revision(this.#revision)
    return revision(this.#revision + (this.#again ? 2 : 1))
  }

  /** True while the datapath works on a commit. */
  get isUnderWay(): boolean {
    return this.#watch.isUnderWay
  }

  /** How long the datapath has worked on the commit under way, and whether it is stalled. */
  get watch(): Pick<CommitWatch, 'underWayMs' | 'isStalled' | 'stalls' | 'times'> {
    return this.#watch
  }

  /** How many entries the datapath refused since the start. A repeated refusal is counted again. */
  get failures(): number {
    return this.#failures
  }

  /** The first refused entry of the last commit that had one; undefined if the datapath has refused none since the start. */
  get lastRefused(): CommitFailure | undefined {
    return this.#lastRefused
  }

  /** How many wanted entries are missing or stale at present, because the datapath refused them. */
  get refused(): number {
    return this.#prefixes.refused + this.#policy.refused + this.#endpoints.refused
  }

  /** Calls `listener` each time a commit that was under way has ended. The next commit can be under way by that moment. */
  onEnd(listener: () => void): void {
    this.#listeners.push(listener)
  }

  upsertEndpoint(endpoint: EndpointEntry): void {
    this.#endpoints.upsert(endpoint)
  }

  removeEndpoint(endpoint: EndpointId): void {
    this.#endpoints.remove(endpoint)
  }

  /**
   * Lists again what was not possible before, for the next `commit`: entries that the datapath refused, identities that found no room in
   * a policy map, and degraded prefixes, which lack labels because identities ran out. Call this about once a second.
   */
  retry(): void {
    this.#prefixes.retry()
    this.#options.policyMaps.retry()
    this.#options.ipcache.heal(HEALED_PER_RETRY)
  }

  /**
   * Writes all changes to the datapath, now or as soon as the datapath is free. Returns the refused entries. An empty list means that
   * everything is in force, or that the datapath still works on a commit (`isUnderWay`).
   */
  commit(): readonly CommitFailure[] {
    if (this.#watch.isUnderWay) {
      this.#again = true
      return NONE
    }
    const changes = this.#gather()
    if (changes === undefined) {
      this.#options.labelSets.collect()
      return NONE
    }
    this.#watch.start()
    const result = this.#options.datapath.commit(changes)
    if (result !== undefined) {
      this.#watch.end()
      const failures = this.#settle(result)
      return this.#policy.isSplit ? [...failures, ...this.commit()] : failures
    }
    this.#again = this.#policy.isSplit
    this.#watch.begin()
    this.#prefixes.markUnderWay()
    this.#options.labelSets.collect()
    return NONE
  }

  /** Writes changes outside the wanted state, such as the removal of stale entries. Calls `make` when the datapath is free. */
  commitExtra(make: () => Changes): void {
    this.#extra.push(make)
    if (!this.#watch.isUnderWay) this.#commitExtra()
  }

  /** True if the wanted identity of a prefix is in force, with all policy entries of that identity. `row`: the prefix in the IPCache. */
  isApplied(row: number): boolean {
    const { prefixes } = this.#options.ipcache
    if (prefixes.wanted[row] !== prefixes.applied[row]) return false
    if (prefixes.addressClass[row] !== prefixes.appliedClass[row]) return false
    if ((prefixes.flags[row]! & ROW_UNDER_WAY) !== 0) return false
    return this.#isComplete(prefixes.identityOf(row))
  }

  /**
   * True if the endpoint still waits for something about a prefix: the prefix entry, the endpoint itself, or a policy entry. The commit
   * under way or the next commit will write it. False if the datapath refused an entry of the identity, which can then wait without end.
   */
  isPending(row: number, endpoint: EndpointId): boolean {
    if (!this.#watch.isUnderWay) return false
    const { prefixes } = this.#options.ipcache
    const id = prefixes.identityOf(row)
    if (!this.#isComplete(id)) return false
    if ((prefixes.flags[row]! & (ROW_CHANGED | ROW_UNDER_WAY)) !== 0) return true
    if (this.#endpoints.isPending(endpoint)) return true
    const addressClass = identity(prefixes.addressClass[row]!)
    return (
      this.#policy.isPending(endpoint, id) ||
      this.#policy.isPending(endpoint, addressClass) ||
      this.#policy.isPending(endpoint, ANY_IDENTITY)
    )
  }

  #isComplete(id: Identity): boolean {
    return this.#policy.isComplete(id) && this.#options.policyMaps.isComplete(id)
  }

  /** Collects all changes; undefined if there are none. */
  #gather(): Changes | undefined {
    const { allocator, policyMaps } = this.#options
    const prefixes = this.#prefixes
    const policy = this.#policy
    const endpoints = this.#endpoints
    this.#gatherPart(prefixes)
    if (allocator.hasChanges || policyMaps.awaitsIdentities) this.#gatherIdentities()
    if (policy.hasChanges) this.#gatherPart(policy)
    if (endpoints.hasChanges) this.#gatherPart(endpoints)
    if (this.#parts.length === 0) return undefined
    return {
      policyUpserts: policy.upserts,
      prefixUpserts: prefixes.upserts,
      endpointUpserts: endpoints.upserts,
      endpointRemovals: endpoints.removals,
      prefixRemovals: prefixes.removals,
      policyRemovals: policy.removals,
    }
  }

  #gatherPart(part: Part): void {
    part.gather()
    if (part.count > 0) this.#parts.push(part)
  }

  #gatherIdentities(): void {
    const { allocator, selectors, policyMaps, ipcache } = this.#options
    const { allocated, fresh, unused } = allocator.takeChanges()
    if (allocated.length > 0) this.#options.onNumbers?.(allocated)
    for (const id of fresh) {
      const set = allocator.setOf(id)
      if (set === undefined) continue
      policyMaps.addIdentity(id, selectors.addIdentity(id, set))
    }
    for (const row of this.#prefixes.upsertRows) {
      policyMaps.need(ipcache.prefixes.identityOf(row))
    }
    for (const id of unused) {
      const set = allocator.setOf(id)
      policyMaps.removeIdentity(id, selectors.selectorsOf(id))
      if (set !== undefined) selectors.removeIdentity(id, set)
    }
    policyMaps.endReservation()
  }

  /** Handles the end of the commit that was under way: notes the result, begins the next commit and calls the listeners. */
  #ended(result: CommitResult): void {
    invariant(this.#watch.isUnderWay, 'a commit that ends was under way')
    this.#watch.end()
    if (this.#isExtra) this.#settleExtra(result)
    else this.#settle(result)
    this.#commitExtra()
    if (this.#again && !this.#watch.isUnderWay) {
      this.#again = false
      this.commit()
    }
    for (const listener of this.#listeners) listener()
  }

  #settle(failures: CommitResult): CommitResult {
    for (const part of this.#parts) part.settle(failures)
    this.#parts.length = 0
    this.#failures += failures.length
    this.#lastRefused = failures[0] ?? this.#lastRefused
    this.#revision++
    this.#options.labelSets.collect()
    return failures
  }

  #commitExtra(): void {
    while (!this.#watch.isUnderWay) {
      const make = this.#extra.shift()
      if (make === undefined) return
      const changes = make()
      this.#watch.start()
      const result = this.#options.datapath.commit(changes)
      this.#isExtra = true
      if (result === undefined) {
        this.#watch.begin()
      } else {
        this.#watch.end()
        this.#settleExtra(result)
      }
    }
  }

  #settleExtra(failures: CommitResult): void {
    this.#isExtra = false
    this.#failures += failures.length
    this.#revision++
  }
}
