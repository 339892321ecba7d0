// The way back to what an earlier daemon knew and enforced, after the configuration is in force (docs/spec/promises "State and
// restart"). Additions only, in slices beside the packet path:
//   pairs    what was learned comes back, with the numbers that its label sets had
//   claims   addresses that the kernel has and no pair names, learned too late to be written down: those whose labels are
//            known get those of selectors in force from the owner `restored`; those of which the kernel's number is all that is known keep their
//            entries as they are. What configuration made and makes no more goes at once
//   grace    for `state.restore-grace` the names may be asked again
//   done     what `restored` owned goes, then what nobody claimed, then the numbers that waited
// Policy entries that are not wanted go once the pairs are back, but for those of numbers that such addresses carry.

import { endpointId, type EndpointId, type Identity } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import type { DatapathDump, PolicyEntry } from '../datapath/datapath.ts'
import { NODE_SCOPE } from '../datapath/prefix-batch.ts'
import { NAMED_LABEL, WORLD_IPV4, WORLD_IPV6 } from '../identity/reserved.ts'
import type { ToRestore } from '../names/name-cache.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { prefixRemovals, stalePolicies } from '../reconcile/stale-entries.ts'
import type { PendingEntries } from './pending-entries.ts'

export type RestartPhase = 'pairs' | 'claims' | 'grace' | 'leaving' | 'done'

export interface RestartOptions {
  readonly core: CoreState
  readonly restored: DatapathDump
  /** Absent: nothing was written down. */
  readonly pending: PendingEntries | undefined
  /** `state.restore-grace`. */
  readonly graceMs: number
  readonly endpoints: () => ReadonlySet<EndpointId>
  /** Nothing of the earlier daemon is left. */
  readonly onDone?: () => void
}

const SLICE_MS = 2
const PAIRS_PER_LOOK = 64
const ENTRIES_PER_LOOK = 512
const OWNER = 'restored'
const NOBODY: ReadonlySet<Identity> = new Set()

/** How far it has come, for people. */
export interface RestartProgress {
  readonly phase: RestartPhase
  /** Pairs that came back. */
  readonly restored: number
  /** Pairs on their way. */
  readonly left: number
  /** Addresses that the kernel has and no pair names, with their labels and without. */
  readonly claimed: number
  readonly kept: number
}

export class Restart implements ToRestore {
  readonly counters = { claimed: 0, kept: 0, removed: 0 }
  readonly #to: RestartOptions
  readonly #owner: number
  #phase: RestartPhase = 'pairs'
  #entry = 0
  /** Entries whose labels are known. */
  readonly #claimed = new Set<number>()
  /** Entries that stay as they are, and the numbers that they carry. */
  #kept: number[] = []
  readonly #spared = new Set<Identity>()
  #stopped = false

  constructor(options: RestartOptions) {
    this.#to = options
    this.#owner = options.core.owners.hold(OWNER)
    options.core.names.toRestore = this
  }

  get phase(): RestartPhase {
    return this.#phase
  }

  /** Policy entries of the earlier daemon, as long as any of them may be left. */
  get leftPolicies(): readonly PolicyEntry[] {
    return this.#phase === 'done' ? [] : this.#to.restored.policies
  }

  get progress(): RestartProgress {
    const { pending } = this.#to
    const { claimed, kept } = this.counters
    const isBack = this.#phase !== 'pairs'
    const left = isBack ? 0 : (pending?.left ?? 0)
    return { phase: this.#phase, restored: pending?.counters.restored ?? 0, left, claimed, kept }
  }

  /** An answer is about to teach an address: what was known of it comes first, from the state folder, else from the kernel. */
  claim(family: Family, octets: Uint8Array, offset: number): void {
    const { core, pending } = this.#to
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
    if (labels !== undefined) this.#restore(entry, labels)
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
    const { clock, committer } = this.#to.core
    const until = clock.now() + milliseconds
    let isMore = true
    do isMore = this.#advance()
    while (isMore && clock.now() < until)
    committer.commit()
    return isMore
  }

  /** The grace is over. */
  leave(): void {
    if (this.#phase === 'grace') this.#phase = 'leaving'
  }

  #work(): void {
    if (this.#stopped) return
    const { core, graceMs, onDone } = this.#to
    if (this.step(SLICE_MS)) {
      core.clock.soon(() => this.#work())
    } else if (this.#phase === 'grace') {
      core.clock.after(graceMs, () => {
        this.leave()
        this.#work()
      })
    } else {
      onDone?.()
    }
  }

  #advance(): boolean {
    switch (this.#phase) {
      case 'pairs':
        this.#bringBack()
        return true
      case 'claims':
        return this.#claim()
      case 'grace':
        return false
      case 'leaving':
        return this.#takeAway()
      case 'done':
        return false
    }
  }

  #bringBack(): void {
    const { core, pending } = this.#to
    if (pending?.step(PAIRS_PER_LOOK) === false) return
    // Entries that what came back wants are taken by then.
    core.committer.commit()
    this.#phase = 'claims'
  }

  #claim(): boolean {
    const { core } = this.#to
    const { batch } = core.inherited
    const stale: number[] = []
    const endpoints = this.#to.endpoints()
    const end = Math.min(batch.count, this.#entry + ENTRIES_PER_LOOK)
    for (; this.#entry < end; this.#entry++) {
      if (!core.inherited.isTaken(this.#entry) && !this.#isClaimed(this.#entry, endpoints)) {
        stale.push(this.#entry)
      }
    }
    this.#remove(stale)
    if (this.#entry < batch.count) return true
    core.names.toRestore = undefined
    this.#claimed.clear()
    this.#removePolicies(this.#spared)
    this.#phase = 'grace'
    return false
  }

  /** Whether an entry that nobody wants stays for the grace. */
  #isClaimed(entry: number, endpoints: ReadonlySet<EndpointId>): boolean {
    const { batch } = this.#to.core.inherited
    const addressClass = batch.addressClass(entry)
    const isWorld = addressClass === WORLD_IPV4 || addressClass === WORLD_IPV6
    if (!isWorld || batch.length(entry) !== widthOf(batch.family(entry))) return false
    const scope = batch.scope(entry)
    const id = batch.identity(entry)
    const labels = this.#labelsOf(id)
    if (scope === NODE_SCOPE && labels !== undefined) return this.#restore(entry, labels)
    if (scope !== NODE_SCOPE && !endpoints.has(endpointId(scope))) return false
    this.#kept.push(entry)
    this.#spared.add(id)
    this.counters.kept++
    return true
  }

  #labelsOf(id: Identity): readonly string[] | undefined {
    const { allocator, labelSets } = this.#to.core
    const set = allocator.setOf(id)
    return set === undefined ? allocator.numbers.labelsOf(id) : labelSets.format(set)
  }

  /** Gives an address the labels by which names were selected; the rest it inherits as ever. */
  #restore(entry: number, labels: readonly string[]): boolean {
    const { restoredLabels, inherited } = this.#to.core
    if (this.#claimed.has(entry)) return false
    this.#claimed.add(entry)
    const taught = labels.filter((label) => label.startsWith('fqdn:') || label === NAMED_LABEL)
    if (taught.length === 0) return false
    const prefix = inherited.batch.prefix(entry)
    if (!restoredLabels.add(prefix, this.#owner, taught)) return false
    this.counters.claimed++
    return true
  }

  #takeAway(): boolean {
    const { core } = this.#to
    core.restoredLabels.drop(ENTRIES_PER_LOOK)
    if (core.restoredLabels.count > 0) return true
    core.committer.commit()
    this.#remove(this.#kept.splice(-ENTRIES_PER_LOOK))
    if (this.#kept.length > 0) return true
    this.#removePolicies(NOBODY)
    core.allocator.numbers.forgetWithheld()
    core.owners.release(this.#owner)
    this.#phase = 'done'
    return false
  }

  #remove(entries: readonly number[]): void {
    if (entries.length === 0) return
    const { committer, inherited } = this.#to.core
    // By the time that the datapath is free, an answer may have taught one of them again.
    committer.commitExtra(() => {
      const left = entries.filter((entry) => !inherited.isTaken(entry))
      const changes = prefixRemovals(inherited.batch, left)
      for (const entry of left) inherited.drop(entry)
      this.counters.removed += left.length
      return changes
    })
  }

  #removePolicies(spared: ReadonlySet<Identity>): void {
    const { core, restored, endpoints } = this.#to
    core.committer.commitExtra(() => stalePolicies(core, restored, endpoints(), spared))
  }
}
