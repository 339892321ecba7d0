// Restart brings a daemon back to the names and entries of the daemon before. It begins when the configuration is in force, and works in
// slices beside the packet path. The phase `pairs` only adds; later phases also remove. The phases, as `namegate status` names them:
//   pairs    Saved entries come back, and their label sets get the numbers that they had. A look at the connections comes first: it brings
//            back the entries with an open connection, so that no eviction chooses one of them. Without saved entries there is no look,
//            because it takes many milliseconds where the kernel's connection table is large.
//   claims   The kernel can have an entry for an address without a saved entry, because namegate learned the address too late to save it.
//            If the labels of such a kernel entry are known, the address gets a fact of the owner `restored` with those labels that a
//            selector in force gives. If they are unknown, or the entry is in an endpoint's own scope, the entry stays unchanged.
//            Every other kernel entry that no fact wants is removed, and so is every policy entry that no policy wants. Only policy
//            entries with numbers of kept kernel entries stay.
//   grace    For the time `state.restore-grace`, clients can ask for their names again.
//   leaving  Restart removes the facts of `restored`, then the kept kernel entries that no fact wants, then the remaining policy entries
//            that no policy wants. Then it ends the withholding of numbers.
//   done     Nothing of the daemon before is left.

import { endpointId, type EndpointId, type Identity } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import type { DatapathDump, PolicyEntry } from '../datapath/entries.ts'
import { NODE_SCOPE, PrefixView } from '../datapath/prefix-batch.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { NAMED_LABEL, WORLD_IPV4, WORLD_IPV6 } from '../identity/reserved.ts'
import type { ToRestore } from '../names/name-cache.ts'
import { prefixRemovals, stalePolicies } from '../reconcile/stale-entries.ts'
import type { PendingEntries } from './pending-entries.ts'
import { RestoredLabels } from './restored-labels.ts'

export type RestartPhase = 'pairs' | 'claims' | 'grace' | 'leaving' | 'done'

export interface RestartOptions {
  readonly core: CoreState
  /** What the kernel enforced when the daemon started. */
  readonly restored: DatapathDump
  /** Saved entries. Undefined: nothing was saved. */
  readonly pending: PendingEntries | undefined
  /** `state.restore-grace`. */
  readonly graceMs: number
  readonly endpoints: () => ReadonlySet<EndpointId>
}

const SLICE_MS = 2
const PENDING_PER_LOOK = 64
const KERNEL_ENTRIES_PER_LOOK = 512
const OWNER = 'restored'
const NONE_SPARED: ReadonlySet<Identity> = new Set()

/** The progress of a restart, as `namegate status` shows it. */
export interface RestartProgress {
  readonly phase: RestartPhase
  /** Saved entries that are back. */
  readonly restored: number
  /** Saved entries that are not back yet. */
  readonly left: number
  /** Addresses of kernel entries that got facts of the owner `restored`. */
  readonly claimed: number
  /** Kernel entries that no fact wants and that stay until the phase `leaving`. */
  readonly kept: number
}

export class Restart implements ToRestore {
  readonly counters = { claimed: 0, kept: 0, removed: 0 }
  readonly #options: RestartOptions
  readonly #owner: number
  readonly #restoredLabels: RestoredLabels
  #phase: RestartPhase = 'pairs'
  /** The next kernel entry to look at, a row of `core.inherited`. */
  #next = 0
  /** Kernel entries for which `#restoreLabels` was called. */
  readonly #claimed = new Set<number>()
  /** Kernel entries that stay unchanged until the phase `leaving`. */
  #kept: number[] = []
  /** The numbers in these kernel entries. */
  readonly #spared = new Set<Identity>()
  readonly #prefix = new PrefixView()
  #stopped = false

  constructor(options: RestartOptions) {
    const { core } = options
    this.#options = options
    this.#owner = core.owners.hold(OWNER)
    this.#restoredLabels = new RestoredLabels(core, this.#owner)
    core.relabel.restored = this.#restoredLabels
    core.names.toRestore = this
  }

  get phase(): RestartPhase {
    return this.#phase
  }

  /** The policy entries of the daemon before. Empty when the restart is done. */
  get inheritedPolicies(): readonly PolicyEntry[] {
    return this.#phase === 'done' ? [] : this.#options.restored.policies
  }

  get progress(): RestartProgress {
    const { pending } = this.#options
    const { claimed, kept } = this.counters
    const left = this.#phase === 'pairs' ? (pending?.left ?? 0) : 0
    return { phase: this.#phase, restored: pending?.counters.restored ?? 0, left, claimed, kept }
  }

  /** Call when the configuration is in force. */
  start(): void {
    this.#work()
  }

  stop(): void {
    this.#stopped = true
  }

  /** Works for about `milliseconds` at most. Returns false when there is nothing to do now. */
  step(milliseconds: number): boolean {
    const { clock, committer } = this.#options.core
    const until = clock.now() + milliseconds
    let isMore = true
    do isMore = this.#advance()
    while (isMore && clock.now() < until)
    committer.commit()
    return isMore
  }

  /** Ends the phase `grace`. */
  leave(): void {
    if (this.#phase === 'grace') this.#phase = 'leaving'
  }

  /**
   * Called before namegate learns an address from an answer, and with each peer of a look. Brings back the saved entries of the address.
   * If the kernel's entry for the address still differs, the address also gets the labels of the kernel's entry.
   */
  claim(family: Family, octets: Uint8Array, offset: number): void {
    const { core, pending } = this.#options
    if (pending?.isClaiming === true) return
    pending?.claim(family, octets, offset)
    if (core.names.eviction.isNear) core.expiry.lookOnce()
    const { inherited, ipcache } = core
    const width = widthOf(family)
    const entry = inherited.find(NODE_SCOPE, this.#prefix.set(family, octets, offset, width))
    if (entry < 0) return
    const id = inherited.batch.identity(entry)
    const row = ipcache.prefixes.find(family, octets, offset, width)
    if (row !== 0 && ipcache.prefixes.wanted[row] === id) return
    const labels = this.#labelsOf(id)
    if (labels !== undefined) this.#restoreLabels(entry, labels)
  }

  #work(): void {
    if (this.#stopped) return
    const { core, graceMs } = this.#options
    if (this.step(SLICE_MS)) {
      core.clock.soon(() => this.#work())
    } else if (this.#phase === 'grace') {
      core.clock.after(graceMs, () => {
        this.leave()
        this.#work()
      })
    }
  }

  /** Does a small piece of the present phase. Returns false when there is nothing to do now. */
  #advance(): boolean {
    switch (this.#phase) {
      case 'pairs':
        this.#bringBackEntries()
        return true
      case 'claims':
        return this.#claimKernelEntries()
      case 'leaving':
        return this.#removeRest()
      case 'grace':
      case 'done':
        return false
    }
  }

  #bringBackEntries(): void {
    const { core, pending } = this.#options
    core.names.begin()
    if (pending !== undefined) {
      if (!core.expiry.hasLooked) return core.expiry.lookStep()
      if (!pending.step(PENDING_PER_LOOK)) return
    }
    // The commit marks the kernel entries that facts want as taken. The next phase looks at the other kernel entries.
    core.committer.commit()
    this.#phase = 'claims'
  }

  #claimKernelEntries(): boolean {
    const { core } = this.#options
    const { batch } = core.inherited
    const stale: number[] = []
    const endpoints = this.#options.endpoints()
    const end = Math.min(batch.count, this.#next + KERNEL_ENTRIES_PER_LOOK)
    for (; this.#next < end; this.#next++) {
      if (!core.inherited.isTaken(this.#next) && !this.#isClaimed(this.#next, endpoints)) {
        stale.push(this.#next)
      }
    }
    this.#removeEntries(stale)
    if (this.#next < batch.count) return true
    core.names.toRestore = undefined
    this.#claimed.clear()
    this.#removePolicies(this.#spared)
    this.#phase = 'grace'
    return false
  }

  /** Decides about a kernel entry that no fact wants. Returns true if the address gets a fact, or if the entry stays unchanged. */
  #isClaimed(entry: number, endpoints: ReadonlySet<EndpointId>): boolean {
    const { batch } = this.#options.core.inherited
    const addressClass = batch.addressClass(entry)
    const isWorld = addressClass === WORLD_IPV4 || addressClass === WORLD_IPV6
    if (!isWorld || batch.length(entry) !== widthOf(batch.family(entry))) return false
    const scope = batch.scope(entry)
    const id = batch.identity(entry)
    const labels = this.#labelsOf(id)
    if (scope === NODE_SCOPE && labels !== undefined) return this.#restoreLabels(entry, labels)
    if (scope !== NODE_SCOPE && !endpoints.has(endpointId(scope))) return false
    this.#kept.push(entry)
    this.#spared.add(id)
    this.counters.kept++
    return true
  }

  #labelsOf(id: Identity): readonly string[] | undefined {
    const { allocator, labelSets } = this.#options.core
    const set = allocator.setOf(id)
    return set === undefined ? allocator.numbers.labelsOf(id) : labelSets.format(set)
  }

  /** Gives an address those of the labels that come from names. It inherits all other labels from its container. */
  #restoreLabels(entry: number, labels: readonly string[]): boolean {
    if (this.#claimed.has(entry)) return false
    this.#claimed.add(entry)
    const taught = labels.filter((label) => label.startsWith('fqdn:') || label === NAMED_LABEL)
    if (taught.length === 0) return false
    const prefix = this.#options.core.inherited.batch.prefix(entry)
    if (!this.#restoredLabels.add(prefix, taught)) return false
    this.counters.claimed++
    return true
  }

  #removeRest(): boolean {
    const { core } = this.#options
    this.#restoredLabels.drop(KERNEL_ENTRIES_PER_LOOK)
    if (this.#restoredLabels.count > 0) return true
    core.committer.commit()
    this.#removeEntries(this.#kept.splice(-KERNEL_ENTRIES_PER_LOOK))
    if (this.#kept.length > 0) return true
    this.#removePolicies(NONE_SPARED)
    core.allocator.numbers.forgetWithheld()
    core.owners.release(this.#owner)
    core.relabel.restored = undefined
    this.#phase = 'done'
    return false
  }

  #removeEntries(entries: readonly number[]): void {
    if (entries.length === 0) return
    const { committer, inherited } = this.#options.core
    // The datapath may be busy. Before it takes these removals, namegate may learn one of the addresses from an answer.
    committer.commitExtra(() => {
      const left = entries.filter((entry) => !inherited.isTaken(entry))
      const changes = prefixRemovals(inherited.batch, left)
      for (const entry of left) inherited.drop(entry)
      this.counters.removed += left.length
      return changes
    })
  }

  #removePolicies(spared: ReadonlySet<Identity>): void {
    const { core, restored, endpoints } = this.#options
    core.committer.commitExtra(() => stalePolicies(core, restored, endpoints(), spared))
  }
}
