// PrefixChanges brings changed rows of the IPCache into the datapath. A row is one prefix. `gather` lists the rows that differ from what
// the datapath has confirmed. `settle` notes the result. With a slow datapath a row can change again between the two calls. Then `settle`
// notes the submitted value, and the next `gather` finds the row again. A row that is under way is not freed, and its identity is held.
//
// A refused row keeps the value that is in force. `retry` lists the row again.

import { identity, type Identity } from '../core/ids.ts'
import type { Allocator } from '../identity/allocator.ts'
import { HOST } from '../identity/reserved.ts'
import { ROW_CHANGED, ROW_REFUSED, ROW_UNDER_WAY, type IpCache } from '../ipcache/ipcache.ts'
import type { CommitFailure } from './entries.ts'
import type { InheritedEntries } from './inherited-entries.ts'
import { PrefixBatch, PrefixView, type PrefixAt } from './prefix-batch.ts'

const NONE: ReadonlySet<number> = new Set()

export class PrefixChanges {
  readonly upserts = new PrefixBatch()
  readonly removals = new PrefixBatch()
  readonly #ipcache: IpCache
  readonly #allocator: Allocator
  readonly #upsertRows: number[] = []
  readonly #removalRows: number[] = []
  readonly #refused = new Set<number>()
  readonly #inherited: InheritedEntries | undefined
  readonly #prefix = new PrefixView()

  constructor(options: {
    readonly ipcache: IpCache
    readonly allocator: Allocator
    /** Prefix entries that an earlier daemon left in the datapath. Absent: none. */
    readonly inherited?: InheritedEntries
  }) {
    this.#ipcache = options.ipcache
    this.#allocator = options.allocator
    this.#inherited = options.inherited
  }

  get count(): number {
    return this.upserts.count + this.removals.count
  }

  /** How many rows the datapath refused when they were last written. */
  get refused(): number {
    return this.#refused.size
  }

  /** The row of each entry of `upserts`, in the same order. */
  get upsertRows(): readonly number[] {
    return this.#upsertRows
  }

  /** Lists refused rows as changed, so that the next `gather` finds them. */
  retry(): void {
    for (const row of this.#refused) this.#ipcache.markChanged(row)
  }

  /** Lists all rows that differ, and holds their identities. Call this only after `settle` of the commit before. */
  gather(): void {
    const { prefixes } = this.#ipcache
    this.upserts.clear()
    this.removals.clear()
    this.#upsertRows.length = 0
    this.#removalRows.length = 0
    for (const row of this.#ipcache.takeChanged()) {
      prefixes.flags[row]! &= ~ROW_CHANGED
      const wanted = identity(prefixes.wanted[row]!)
      const addressClass = identity(prefixes.addressClass[row]!)
      if (wanted !== 0 && prefixes.applied[row] === 0) this.#inherit(row, wanted, addressClass)
      const inForce =
        prefixes.applied[row] === wanted && prefixes.appliedClass[row] === addressClass
      if (inForce || (wanted === 0 && prefixes.applied[row] === 0)) {
        this.#refused.delete(row)
        prefixes.flags[row]! &= ~ROW_REFUSED
        this.#ipcache.freeIfIdle(row)
        continue
      }
      const batch = wanted === 0 ? this.removals : this.upserts
      batch.add(this.#prefixOf(row), wanted, addressClass, prefixes.scoped.scope[row])
      if (wanted === 0) this.#removalRows.push(row)
      else this.#upsertRows.push(row)
      if (isCounted(wanted)) this.#allocator.retain(wanted)
    }
  }

  /** Returns the prefix of a row. The object is valid until the next call. */
  #prefixOf(row: number): PrefixAt {
    const { prefixes } = this.#ipcache
    const { octets, lengths } = prefixes
    return this.#prefix.set(prefixes.family(row), octets, row * 16, lengths[row]!)
  }

  /** Takes the inherited entry of a row. If that entry is equal to the wanted value, notes it as confirmed. */
  #inherit(row: number, wanted: Identity, addressClass: Identity): void {
    const inherited = this.#inherited
    if (inherited === undefined || inherited.left === 0) return
    const { prefixes } = this.#ipcache
    const scope = prefixes.scoped.scope[row]!
    if (!inherited.take(scope, this.#prefixOf(row), wanted, addressClass)) return
    prefixes.applied[row] = wanted
    prefixes.appliedClass[row] = addressClass
    if (isCounted(wanted)) this.#allocator.retain(wanted)
  }

  /** Marks the gathered rows while the datapath works on them. */
  markUnderWay(): void {
    const { flags } = this.#ipcache.prefixes
    for (const row of this.#upsertRows) flags[row]! |= ROW_UNDER_WAY
    for (const row of this.#removalRows) flags[row]! |= ROW_UNDER_WAY
  }

  /** Notes the result of a commit. */
  settle(failures: readonly CommitFailure[]): void {
    const upserts = indexesOf(failures, 'upsert')
    const removals = indexesOf(failures, 'remove')
    for (let i = 0; i < this.#upsertRows.length; i++) {
      const row = this.#upsertRows[i] ?? 0
      const id = this.upserts.identity(i)
      this.#settle(row, id, this.upserts.addressClass(i), !upserts.has(i))
    }
    for (let i = 0; i < this.#removalRows.length; i++) {
      const row = this.#removalRows[i] ?? 0
      this.#settle(row, identity(0), this.removals.addressClass(i), !removals.has(i))
    }
    this.#upsertRows.length = 0
    this.#removalRows.length = 0
  }

  #settle(row: number, submitted: Identity, addressClass: Identity, applied: boolean): void {
    const { prefixes } = this.#ipcache
    prefixes.flags[row]! &= ~(ROW_UNDER_WAY | ROW_REFUSED)
    if (!applied) {
      this.#refused.add(row)
      prefixes.flags[row]! |= ROW_REFUSED
      if (isCounted(submitted)) this.#allocator.release(submitted)
      return
    }
    this.#refused.delete(row)
    const before = identity(prefixes.applied[row]!)
    prefixes.applied[row] = submitted
    prefixes.appliedClass[row] = addressClass
    if (isCounted(before)) this.#allocator.release(before)
    this.#ipcache.freeIfIdle(row)
  }
}

function isCounted(id: Identity): boolean {
  return id !== 0 && id !== HOST
}

function indexesOf(
  failures: readonly CommitFailure[],
  action: 'upsert' | 'remove',
): ReadonlySet<number> {
  if (failures.length === 0) return NONE
  const indexes = new Set<number>()
  for (const failure of failures) {
    if (failure.section === 'prefix' && failure.action === action) indexes.add(failure.index)
  }
  return indexes
}
