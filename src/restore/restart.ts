// The owner of a restart: it brings a daemon back to what the daemon before knew and enforced. It begins once the
// configuration is in force and works in slices beside the packet path. Until its last phase it only adds. Its phases, by
// their names in `namegate status`:
//   pairs    Saved entries come back, and their label sets get their former numbers.
//   claims   The kernel has entries for addresses that no saved entry has: they were learned too late to be saved. When the
//            labels of such an address are known, it gets those that selectors in force give, from the owner `restored`.
//            When only its number is known, the kernel's entry stays as it is. All other entries that nothing wants go.
//   grace    For `state.restore-grace`, clients may ask the names again.
//   leaving  The facts of `restored` go, then the kernel's entries that nothing wanted, then the numbers still withheld.
//   done     Nothing of the daemon before is left.
// Policy entries that nothing wants go when the claims are made. Those of numbers that kept addresses carry go at the end.

import { endpointId, type EndpointId, type Identity } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import type { DatapathDump, PolicyEntry } from '../datapath/entries.ts'
import { NODE_SCOPE } from '../datapath/prefix-batch.ts'
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
  /** Saved entries. Absent: nothing was saved. */
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

/** The progress of a restart, for people. */
export interface RestartProgress {
  readonly phase: RestartPhase
  /** Saved entries that came back. */
  readonly restored: number
  /** Saved entries still to come. */
  readonly left: number
  /** Addresses that only the kernel had: with known labels, and without. */
  readonly claimed: number
  readonly kept: number
}

export class Restart implements ToRestore {
  readonly counters = { claimed: 0, kept: 0, removed: 0 }
  readonly #in: RestartOptions
  readonly #owner: number
  readonly #restoredLabels: RestoredLabels
  #phase: RestartPhase = 'pairs'
  /** The next kernel entry to look at, a row of `core.inherited`. */
  #next = 0
  /** Kernel entries whose labels were claimed. */
  readonly #claimed = new Set<number>()
  /** Kernel entries that stay as they are, and the numbers that they carry. */
  #kept: number[] = []
  readonly #spared = new Set<Identity>()
  #stopped = false

  constructor(options: RestartOptions) {
    const { core } = options
    this.#in = options
    this.#owner = core.owners.hold(OWNER)
    this.#restoredLabels = new RestoredLabels(core, this.#owner)
    core.relabel.restored = this.#restoredLabels
    core.names.toRestore = this
  }

  get phase(): RestartPhase {
    return this.#phase
  }

  /** Policy entries of the daemon before; empty once none of them can be left. */
  get inheritedPolicies(): readonly PolicyEntry[] {
    return this.#phase === 'done' ? [] : this.#in.restored.policies
  }

  get progress(): RestartProgress {
    const { pending } = this.#in
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

  /** Works for at most about `milliseconds`; false when there is nothing to do now. */
  step(milliseconds: number): boolean {
    const { clock, committer } = this.#in.core
    const until = clock.now() + milliseconds
    let isMore = true
    do isMore = this.#advance()
    while (isMore && clock.now() < until)
    committer.commit()
    return isMore
  }

  /** Ends the grace. */
  leave(): void {
    if (this.#phase === 'grace') this.#phase = 'leaving'
  }

  /**
   * An answer is about to teach an address. First the address gets back what was known of it: from the state folder, else
   * from the kernel.
   */
  claim(family: Family, octets: Uint8Array, offset: number): void {
    const { core, pending } = this.#in
    if (pending?.isClaiming === true) return
    pending?.claim(family, octets, offset)
    const { inherited, ipcache } = core
    const width = widthOf(family)
    const entry = inherited.find(NODE_SCOPE, family, octets, offset, width)
    if (entry < 0) return
    const id = inherited.batch.identity(entry)
    const row = ipcache.prefixes.find(family, octets, offset, width)
    if (row !== 0 && ipcache.prefixes.wanted[row] === id) return
    const labels = this.#labelsOf(id)
    if (labels !== undefined) this.#restoreLabels(entry, labels)
  }

  #work(): void {
    if (this.#stopped) return
    const { core, graceMs } = this.#in
    if (this.step(SLICE_MS)) {
      core.clock.soon(() => this.#work())
    } else if (this.#phase === 'grace') {
      core.clock.after(graceMs, () => {
        this.leave()
        this.#work()
      })
    }
  }

  /** A small piece of the present phase; false when there is nothing to do now. */
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
    const { core, pending } = this.#in
    if (pending?.step(PENDING_PER_LOOK) === false) return
    // The commit takes the kernel entries that restored entries want. The next phase looks at the others.
    core.committer.commit()
    this.#phase = 'claims'
  }

  #claimKernelEntries(): boolean {
    const { core } = this.#in
    const { batch } = core.inherited
    const stale: number[] = []
    const endpoints = this.#in.endpoints()
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

  /** Whether a kernel entry that nothing wants stays for the grace. */
  #isClaimed(entry: number, endpoints: ReadonlySet<EndpointId>): boolean {
    const { batch } = this.#in.core.inherited
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
    const { allocator, labelSets } = this.#in.core
    const set = allocator.setOf(id)
    return set === undefined ? allocator.numbers.labelsOf(id) : labelSets.format(set)
  }

  /** Gives an address those labels that names taught it. It inherits all others from the prefixes around it. */
  #restoreLabels(entry: number, labels: readonly string[]): boolean {
    if (this.#claimed.has(entry)) return false
    this.#claimed.add(entry)
    const taught = labels.filter((label) => label.startsWith('fqdn:') || label === NAMED_LABEL)
    if (taught.length === 0) return false
    const prefix = this.#in.core.inherited.batch.prefix(entry)
    if (!this.#restoredLabels.add(prefix, taught)) return false
    this.counters.claimed++
    return true
  }

  #removeRest(): boolean {
    const { core } = this.#in
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
    const { committer, inherited } = this.#in.core
    // The datapath may be busy. An answer may teach one of the addresses before these removals begin.
    committer.commitExtra(() => {
      const left = entries.filter((entry) => !inherited.isTaken(entry))
      const changes = prefixRemovals(inherited.batch, left)
      for (const entry of left) inherited.drop(entry)
      this.counters.removed += left.length
      return changes
    })
  }

  #removePolicies(spared: ReadonlySet<Identity>): void {
    const { core, restored, endpoints } = this.#in
    core.committer.commitExtra(() => stalePolicies(core, restored, endpoints(), spared))
  }
}
