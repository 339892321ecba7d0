// Repair restores what another program changed or deleted in the kernel's maps, within two intervals of `datapath.verify`. At each interval
// it compares the maps with the entries that the kernel confirmed. It works in slices of a millisecond. It writes through the committer, so
// that there is only one writer, and adds entries before it removes others. It writes the value that is wanted at the moment of the repair,
// not the value that was wanted when the difference was found. After each walk it checks the fixtures (programs, listeners). It also checks
// programs when the kernel reports that some were detached. It logs the first difference with its entry, and counts all differences.

import type { Timer } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import type { Changes, EndpointEntry, PolicyEntry, PolicyKey } from '../datapath/entries.ts'
import type { FixtureScope, RepairedEntry } from '../datapath/repair.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import {
  differenceText,
  walkDifferences,
  type DifferencesOptions,
  type KernelDifference,
  type KernelPrefix,
  type Walk,
} from './kernel-differences.ts'
import { policyKeyText } from './stale-entries.ts'

export interface RepairOptions extends DifferencesOptions {
  /** `datapath.verify` */
  readonly everyMs: number
  readonly onRepaired: (first: RepairedEntry, count: number) => void
  /** Called with the reason if the kernel cannot be read. */
  readonly onFault: (reason: string) => void
}

const SLICE_MS = 1
/** How many differences one walk repairs at most. The next walk finds the rest. */
const DIFFERENCES_MAX = 4096

export class Repair {
  /** `walks`: complete comparisons. `repaired`: repaired entries and fixtures. */
  readonly counters = { walks: 0, repaired: 0 }
  /** The first difference of the last repair. */
  last: RepairedEntry | undefined
  readonly #options: RepairOptions
  #timer: Timer | undefined
  #walk: Walk | undefined
  #found: KernelDifference[] = []
  /** The differences of the first walk, while the second walk confirms them. Undefined during the first walk. */
  #suspects: ReadonlySet<string> | undefined
  #isStopped = false

  constructor(options: RepairOptions) {
    this.#options = options
  }

  start(): void {
    const { repair } = this.#options.core.datapath
    if (repair.kind === 'by-daemon') repair.onTouched(() => this.#mendFixtures('touched'))
    this.#again()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #again(): void {
    this.#timer = this.#options.core.clock.after(this.#options.everyMs, () =>
      this.#begin(undefined),
    )
  }

  #begin(suspects: ReadonlySet<string> | undefined): void {
    this.#suspects = suspects
    this.#found = []
    this.#walk = walkDifferences(this.#options)
    this.#work()
  }

  #work(): void {
    if (this.#isStopped) return
    const { clock } = this.#options.core
    const until = clock.now() + SLICE_MS
    let isMore = true
    try {
      do isMore = this.#step()
      while (isMore && clock.now() < until)
    } catch (error) {
      this.#options.onFault(messageOf(error))
      this.#again()
      return
    }
    if (isMore) clock.soon(() => this.#work())
    else this.#end()
  }

  /** Does one step of the walk. Returns false when the walk is over. */
  #step(): boolean {
    const step = this.#walk?.next()
    if (step === undefined || step.done === true) return false
    const difference = step.value
    if (difference === undefined) return true
    const isNews = this.#suspects?.has(differenceText(difference)) === false
    if (!isNews) this.#found.push(difference)
    return this.#found.length < DIFFERENCES_MAX
  }

  #end(): void {
    const found = this.#found
    this.#found = []
    this.#walk = undefined
    if (this.#suspects === undefined && found.length > 0) {
      this.#begin(new Set(found.map(differenceText)))
      return
    }
    this.counters.walks++
    if (found.length > 0) {
      this.#mend(found)
      this.#report(found)
    }
    this.#mendFixtures('all')
    this.#again()
  }

  #mendFixtures(which: FixtureScope): void {
    const { repair } = this.#options.core.datapath
    const found = repair.kind === 'by-daemon' ? [...repair.fixtures(which)] : []
    for (const { mend } of found) mend()
    this.#report(found)
  }

  #report(found: readonly RepairedEntry[]): void {
    const [first] = found
    if (first === undefined) return
    this.counters.repaired += found.length
    const { map, key, want, have } = first
    this.last = { map, key, want, have }
    this.#options.onRepaired(this.last, found.length)
  }

  #mend(found: readonly KernelDifference[]): void {
    const prefixes: KernelPrefix[] = []
    const entries: PolicyKey[] = []
    for (const difference of found) {
      if (difference.map === 'ng_ipcache') prefixes.push(difference.prefix)
      else if (difference.map === 'ng_policy') entries.push(difference.entry)
      else this.#mendEndpoint(difference)
    }
    if (prefixes.length + entries.length === 0) return
    this.#options.core.committer.commitExtra(() => this.#changes(prefixes, entries))
  }

  #mendEndpoint(difference: KernelDifference & { readonly map: 'ng_endpoints' }): void {
    const { core, endpoints } = this.#options
    const { repair } = core.datapath
    if (repair.kind !== 'by-daemon') return
    for (const entry of endpoints()) {
      if (entry.id === difference.endpoint) repair.rewrite(entry, difference.held?.sources ?? [])
    }
  }

  /** Returns the changes that write the present wanted values of these entries. */
  #changes(prefixes: readonly KernelPrefix[], entries: readonly PolicyKey[]): Changes {
    const wanted = this.#wantedOf(new Set(entries.map(({ endpoint }) => endpoint)))
    const upserts = entries.flatMap((entry) => wanted.get(policyKeyText(entry)) ?? [])
    const removals = entries.filter((entry) => !wanted.has(policyKeyText(entry)))
    return {
      policyUpserts: [...upserts.filter(isDeny), ...upserts.filter((entry) => !isDeny(entry))],
      ...this.#prefixChanges(prefixes),
      endpointUpserts: NO_ENDPOINTS,
      endpointRemovals: [],
      policyRemovals: removals,
    }
  }

  #prefixChanges(
    found: readonly KernelPrefix[],
  ): Pick<Changes, 'prefixUpserts' | 'prefixRemovals'> {
    const { ipcache, inherited } = this.#options.core
    const { prefixes } = ipcache
    const [prefixUpserts, prefixRemovals] = [new PrefixBatch(), new PrefixBatch()]
    for (const { scope, identity, addressClass, ...prefix } of found) {
      const row = prefixes.findIn(scope, prefix.family, prefix.octets, 0, prefix.length)
      if (prefixes.applied[row] === 0) {
        // An earlier daemon left the entry, and another process has changed it since.
        const left = inherited.find(scope, prefix)
        if (left >= 0) inherited.drop(left)
        prefixRemovals.add(prefix, identity, addressClass, scope)
      } else {
        const { id, addressClass: ours } = prefixes.appliedOf(row)
        prefixUpserts.add(prefix, id, ours, scope)
      }
    }
    return { prefixUpserts, prefixRemovals }
  }

  #wantedOf(endpoints: ReadonlySet<EndpointId>): ReadonlyMap<string, PolicyEntry> {
    const wanted = new Map<string, PolicyEntry>()
    for (const endpoint of endpoints) {
      for (const entry of this.#options.core.policyMaps.entriesOf(endpoint)) {
        wanted.set(policyKeyText(entry), entry)
      }
    }
    return wanted
  }
}

const NO_ENDPOINTS: readonly EndpointEntry[] = []

function isDeny({ verdict }: PolicyEntry): boolean {
  return verdict === 'deny'
}
