// The only writer of the datapath. Other components change facts, rules or endpoints; `commit` gathers what differs from what the datapath
// has confirmed, and applies all of it in the order that leaves no hole: policy entries of new identities, prefixes, endpoints, then removals
// in reverse.
//
// A datapath that applies at once (memory, eBPF) is done when `commit` returns. A slower one (nftables) has one commit under way; later
// changes gather and go with the next commit, which starts by itself. `desired` is the revision that will have all present changes,
// `revision` is the revision in force.
//
// A refused entry stays on the list until it is decided anew: rows keep the identity that is really in force until `retry`; policy and
// endpoints are tried again by the next commit. A revision counts the commits that changed something.

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
import { pairNumber, pairOf, type PolicyTurn } from './policy-changes.ts'
import type { PolicyMaps } from './policy-maps.ts'
import { PrefixChanges } from './prefix-changes.ts'
import { refusedOf } from './refused.ts'

export interface CommitterOptions {
  readonly clock: Clock
  readonly datapath: Datapath
  readonly ipcache: IpCache
  readonly allocator: Allocator
  readonly selectors: SelectorCache
  readonly policyMaps: PolicyMaps
  readonly labelSets: LabelSets
  /** Prefix entries that the datapath has from an earlier daemon. Absent: none. */
  readonly inherited?: InheritedEntries
  /** Called with identities that got their number, before any entry of the datapath carries the number. */
  readonly onNumbers?: ((allocated: readonly Identity[]) => void) | undefined
}

/** Prefixes without all their labels that one `retry` looks at. */
const HEALED_PER_RETRY = 4096
const NONE: readonly CommitFailure[] = []
const NO_POLICY: PolicyTurn = { upserts: [], removals: [] }

export class Committer {
  readonly #to: CommitterOptions
  readonly #prefixes: PrefixChanges
  readonly #endpoints = new EndpointChanges()
  /** Policy entries of the commit that is under way, and the pairs that its upserts are of. */
  #policy: PolicyTurn = NO_POLICY
  readonly #policyPairs = new Set<number>()
  /** Entries of policy and endpoints that the last commit could not place. */
  #refusedOthers = 0
  /** Identities that lack a policy entry because it was refused. */
  #incomplete: ReadonlySet<Identity> = new Set()
  #revision = 0
  #failures = 0
  #lastRefused: CommitFailure | undefined
  readonly #watch: CommitWatch
  /** Whether the commit under way comes from `commitExtra`. */
  #isExtra = false
  /** Whether a commit was asked for meanwhile. */
  #again = false
  /** Changes from `commitExtra`, each made when its turn comes. */
  #extra: (() => Changes)[] = []
  readonly #listeners: (() => void)[] = []

  constructor(options: CommitterOptions) {
    this.#to = options
    this.#prefixes = new PrefixChanges(options)
    this.#watch = new CommitWatch(options)
    options.datapath.onCommitted((result) => this.#ended(result))
  }

  /** The last revision that the datapath has confirmed, refusals apart. */
  get revision(): Revision {
    return revision(this.#revision)
  }

  /** The revision that has all changes of now for which a commit was asked. */
  get desired(): Revision {
    if (!this.#watch.isUnderWay) return revision(this.#revision)
    return revision(this.#revision + (this.#again ? 2 : 1))
  }

  /** Whether the datapath has not confirmed the last commit yet. */
  get isUnderWay(): boolean {
    return this.#watch.isUnderWay
  }

  /** How long the datapath has been at the commit, and whether it is stalled. */
  get watch(): Pick<CommitWatch, 'underWayMs' | 'isStalled' | 'stalls'> {
    return this.#watch
  }

  /** Entries refused since the start. */
  get failures(): number {
    return this.#failures
  }

  /** One of the entries that it refused last, since the start; undefined: it has refused none. */
  get lastRefused(): CommitFailure | undefined {
    return this.#lastRefused
  }

  /** Entries that the datapath refuses to take at present. */
  get refused(): number {
    return this.#prefixes.refused + this.#refusedOthers
  }

  /** Calls `listener` each time a commit that was under way has ended; the next one may have begun. */
  onEnd(listener: () => void): void {
    this.#listeners.push(listener)
  }

  upsertEndpoint(endpoint: EndpointEntry): void {
    this.#endpoints.upsert(endpoint)
  }

  removeEndpoint(endpoint: EndpointId): void {
    this.#endpoints.remove(endpoint)
  }

  /** Tries again what was refused, found no room or lacks labels for want of numbers; call now and then. */
  retry(): void {
    this.#prefixes.retry()
    this.#to.policyMaps.retry()
    this.#to.ipcache.heal(HEALED_PER_RETRY)
  }

  /**
   * Makes the datapath match, now or as soon as it is free. Returns what was refused; nothing while the datapath is
   * at work, which `isUnderWay` says: else an empty list means that all is in force.
   */
  commit(): readonly CommitFailure[] {
    if (this.#watch.isUnderWay) {
      this.#again = true
      return NONE
    }
    const changes = this.#gather()
    if (changes === undefined) {
      this.#to.labelSets.collect()
      return NONE
    }
    const result = this.#to.datapath.commit(changes)
    if (result !== undefined) {
      const failures = this.#settle(result)
      return this.#to.policyMaps.isSplit ? [...failures, ...this.commit()] : failures
    }
    this.#again = this.#to.policyMaps.isSplit
    this.#watch.begin()
    this.#prefixes.markUnderWay()
    for (const entry of this.#policy.upserts) this.#policyPairs.add(pairOf(entry))
    this.#to.labelSets.collect()
    return NONE
  }

  /** Writes what is not of the desired state, such as leftovers. `make` is called when the datapath is free. */
  commitExtra(make: () => Changes): void {
    this.#extra.push(make)
    if (!this.#watch.isUnderWay) this.#commitExtra()
  }

  /** Whether the entry of an address that was just learned is in force as wanted. */
  isApplied(row: number): boolean {
    const { prefixes } = this.#to.ipcache
    if (prefixes.wanted[row] !== prefixes.applied[row]) return false
    if (prefixes.addressClass[row] !== prefixes.appliedClass[row]) return false
    if ((prefixes.flags[row]! & ROW_UNDER_WAY) !== 0) return false
    return this.#isComplete(prefixes.identityOf(row))
  }

  /** Whether commits of now will bring what an endpoint is to be enforced to about an address, its policy included. */
  isPending(row: number, endpoint: EndpointId): boolean {
    if (!this.#watch.isUnderWay) return false
    const { prefixes } = this.#to.ipcache
    const id = prefixes.identityOf(row)
    if (!this.#isComplete(id)) return false
    if ((prefixes.flags[row]! & (ROW_CHANGED | ROW_UNDER_WAY)) !== 0) return true
    if (this.#endpoints.isPending(endpoint)) return true
    const addressClass = identity(prefixes.addressClass[row]!)
    return (
      this.#hasPolicyPending(endpoint, id) ||
      this.#hasPolicyPending(endpoint, addressClass) ||
      this.#hasPolicyPending(endpoint, ANY_IDENTITY)
    )
  }

  #isComplete(id: Identity): boolean {
    return !this.#incomplete.has(id) && this.#to.policyMaps.isComplete(id)
  }

  /** Refused entries wait without limit, so no caller may wait for them. */
  #hasPolicyPending(endpoint: EndpointId, id: Identity): boolean {
    if (this.#incomplete.has(id)) return false
    if (this.#policyPairs.size > 0 && this.#policyPairs.has(pairNumber(endpoint, id))) return true
    return this.#to.policyMaps.isChanged(endpoint, id)
  }

  /** All present changes; undefined when there are none. */
  #gather(): Changes | undefined {
    const prefixes = this.#prefixes
    prefixes.gather()
    this.#gatherIdentities()
    const policy = this.#to.policyMaps.take()
    const endpoints = this.#endpoints.take()
    const count = policy.upserts.length + policy.removals.length + prefixes.count
    if (count + endpoints.upserts.length + endpoints.removals.length === 0) return undefined
    this.#policy = policy
    return {
      policyUpserts: policy.upserts,
      prefixUpserts: prefixes.upserts,
      endpointUpserts: endpoints.upserts,
      endpointRemovals: endpoints.removals,
      prefixRemovals: prefixes.removals,
      policyRemovals: policy.removals,
    }
  }

  #gatherIdentities(): void {
    const { allocator, selectors, policyMaps, ipcache } = this.#to
    const allocated = allocator.takeAllocated()
    if (allocated.length > 0) this.#to.onNumbers?.(allocated)
    for (const id of allocator.takeFresh()) {
      const set = allocator.setOf(id)
      if (set === undefined) continue
      policyMaps.addIdentity(id, selectors.addIdentity(id, set))
    }
    for (const row of this.#prefixes.upsertRows) {
      policyMaps.need(ipcache.prefixes.identityOf(row))
    }
    for (const id of allocator.takeUnused()) {
      const set = allocator.setOf(id)
      policyMaps.removeIdentity(id, selectors.selectorsOf(id))
      if (set !== undefined) selectors.removeIdentity(id, set)
    }
  }

  /** The datapath has ended the commit that was under way: begins the next one and calls the listener. */
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
    const { upserts: written, removals: taken } = this.#policy
    this.#policy = NO_POLICY
    this.#policyPairs.clear()
    const upserts = refusedOf(failures, 'policy', 'upsert', written)
    const removals = refusedOf(failures, 'policy', 'remove', taken)
    this.#to.policyMaps.putBack(upserts, removals)
    if (upserts.length + this.#incomplete.size > 0) {
      this.#incomplete = new Set(upserts.map((entry) => entry.identity))
    }
    const endpoints = this.#endpoints.settle(failures)
    this.#refusedOthers = upserts.length + removals.length + endpoints
    this.#prefixes.settle(failures)
    this.#failures += failures.length
    this.#lastRefused = failures[0] ?? this.#lastRefused
    this.#revision++
    this.#to.labelSets.collect()
    return failures
  }

  #commitExtra(): void {
    while (!this.#watch.isUnderWay) {
      const make = this.#extra.shift()
      if (make === undefined) return
      const result = this.#to.datapath.commit(make())
      this.#isExtra = true
      if (result === undefined) this.#watch.begin()
      else this.#settleExtra(result)
    }
  }

  #settleExtra(failures: CommitResult): void {
    this.#isExtra = false
    this.#failures += failures.length
    this.#revision++
  }
}
