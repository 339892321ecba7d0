// This file puts commits into the tables and hands them to the thread, one at a time. A refused commit is tried once more, with
// the whole table written again. If the kernel refuses it again, the commit's entries are at fault. The commit is then removed
// from the tables, because the committer expects that a refused entry is not in force.

import { identity, type EndpointId } from '../../core/ids.ts'
import {
  type Changes,
  type CommitFailure,
  type CommitResult,
  COMMITTED,
  type EndpointEntry,
  type PolicyEntry,
} from '../entries.ts'
import { PrefixBatch } from '../prefix-batch.ts'
import type { Hooks } from './hooks.ts'
import type { Table } from './tables/table.ts'

/** A checked commit, before it goes to the kernel. */
export interface Taken {
  /** Entries that were refused because a table is full. */
  readonly failures: CommitFailure[]
  readonly counts: { policy: number; prefixes: number; endpoints: number }
  /** How many entries each section had. Used when all entries are refused. */
  readonly sizes: readonly [section: CommitFailure['section'], action: Action, size: number][]
  readonly policies: { readonly entry: PolicyEntry; readonly isThere: boolean }[]
  /** Prefixes with their earlier values. Identity 0 means that there was no value. */
  readonly prefixes: PrefixBatch
  readonly endpoints: { readonly id: EndpointId; readonly before: EndpointEntry | undefined }[]
}

type Action = CommitFailure['action']

export function takeChanges(changes: Changes, table: Table, hooks: Hooks): Taken {
  const { policyUpserts, prefixUpserts, endpointUpserts } = changes
  const { endpointRemovals, prefixRemovals, policyRemovals } = changes
  const taken: Taken = {
    failures: [],
    counts: { policy: 0, prefixes: 0, endpoints: 0 },
    sizes: [
      ['policy', 'upsert', policyUpserts.length],
      ['prefix', 'upsert', prefixUpserts.count],
      ['endpoint', 'upsert', endpointUpserts.length],
      ['endpoint', 'remove', endpointRemovals.length],
      ['prefix', 'remove', prefixRemovals.count],
      ['policy', 'remove', policyRemovals.length],
    ],
    policies: [],
    prefixes: new PrefixBatch(prefixUpserts.count + prefixRemovals.count + 1),
    endpoints: [],
  }
  upsertPolicies(policyUpserts, table, taken)
  setPrefixes(prefixUpserts, table, taken, true)
  for (const entry of endpointUpserts) {
    taken.endpoints.push({ id: entry.id, before: hooks.entryOf(entry.id) })
    hooks.upsert(entry)
  }
  for (const id of endpointRemovals) {
    taken.endpoints.push({ id, before: hooks.entryOf(id) })
    hooks.remove(id)
  }
  setPrefixes(prefixRemovals, table, taken, false)
  for (const key of policyRemovals) {
    const before = table.policies.remove(key)
    if (before !== undefined) taken.policies.push({ entry: before, isThere: true })
  }
  hooks.settle()
  taken.counts.policy = policyUpserts.length + policyRemovals.length
  taken.counts.prefixes = prefixUpserts.count + prefixRemovals.count
  taken.counts.endpoints = endpointUpserts.length + endpointRemovals.length
  return taken
}

/** Undoes a commit and reports every entry of it as refused. Entries that had no room keep their own code. */
export function refuseAll(taken: Taken, code: string, table: Table, hooks: Hooks): CommitResult {
  for (const { entry, isThere } of taken.policies.toReversed()) {
    if (isThere) table.policies.upsert(entry)
    else table.policies.remove(entry)
  }
  const { prefixes } = taken
  for (let i = prefixes.count - 1; i >= 0; i--) {
    table.prefixes.set(prefixes, i, prefixes.identity(i), prefixes.addressClass(i))
  }
  for (const { id, before } of taken.endpoints.toReversed()) {
    if (before === undefined) hooks.remove(id)
    else hooks.upsert(before)
  }
  hooks.settle()
  table.doubt()
  const known = new Map(taken.failures.map((failure) => [textOf(failure), failure]))
  return taken.sizes.flatMap(([section, action, size]) =>
    Array.from({ length: size }, (_, index) => {
      const failure = { section, action, index, code }
      return known.get(textOf(failure)) ?? failure
    }),
  )
}

function upsertPolicies(entries: readonly PolicyEntry[], table: Table, taken: Taken): void {
  entries.forEach((entry, index) => {
    const before = table.policies.upsert(entry)
    if (before === 'full') {
      taken.failures.push({ section: 'policy', action: 'upsert', index, code: 'ENOSPC' })
    } else taken.policies.push({ entry: before ?? entry, isThere: before !== undefined })
  })
}

function setPrefixes(batch: PrefixBatch, table: Table, taken: Taken, isUpsert: boolean): void {
  for (let i = 0; i < batch.count; i++) {
    const id = isUpsert ? batch.identity(i) : 0
    if (!table.prefixes.set(batch, i, id, isUpsert ? batch.addressClass(i) : 0)) {
      taken.failures.push({ section: 'prefix', action: 'upsert', index: i, code: 'ENOSPC' })
      continue
    }
    note(batch, i, table, taken)
  }
}

/** Records the value from before. */
function note(batch: PrefixBatch, i: number, { prefixes }: Table, taken: Taken): void {
  const id = identity(prefixes.beforeIdentity)
  taken.prefixes.add(batch.prefix(i), id, identity(prefixes.beforeClass), batch.scope(i))
}

function textOf({ section, action, index }: CommitFailure): string {
  return `${section} ${action} ${index}`
}

export interface ApplierOptions {
  readonly table: Table
  readonly hooks: Hooks
  readonly onCommitted: (result: CommitResult) => void
}

export class Applier {
  readonly #options: ApplierOptions
  /** What the thread is working on. */
  #state: 'idle' | 'own' | 'commit' | 'repair' = 'idle'
  /** The commit that the thread has, or that waits for the thread. */
  #taken: Taken | undefined
  /** True if there is something to write when the thread is done. */
  #again = false

  constructor(options: ApplierOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#state === 'idle'
  }

  /** See `Datapath.commit`. */
  commit(taken: Taken): CommitResult | undefined {
    if (this.#taken !== undefined) throw new Error('Cannot commit: a commit is under way')
    if (this.#state === 'idle') return this.#begin(taken)
    this.#taken = taken
    return undefined
  }

  /** Writes changes for which no commit waits: now, or when the thread is done. */
  flush(): void {
    this.#again = this.#state !== 'idle'
    if (this.#again) return
    if (this.#options.table.submit() === undefined) this.#state = 'own'
  }

  /** Takes the outcome if the thread is done. With `wait`, waits for the thread, and for a commit that was waiting, too. */
  finish(wait: boolean): void {
    do {
      if (this.#state === 'idle') return
      const done = this.#options.table.take(wait)
      if (done === 'busy') return
      this.#ended(done.outcome)
      if (this.#again || this.#options.table.hasMore) this.flush()
    } while (wait)
  }

  #begin(taken: Taken): CommitResult | undefined {
    const { table, hooks } = this.#options
    const outcome = table.submit()
    if (outcome === undefined) {
      this.#taken = taken
      this.#state = 'commit'
      return undefined
    }
    return outcome === 'none' ? resultOf(taken) : refuseAll(taken, outcome, table, hooks)
  }

  #ended(outcome: string | undefined): void {
    const { table, hooks, onCommitted } = this.#options
    const [state, taken] = [this.#state, this.#taken]
    this.#state = 'idle'
    this.#taken = undefined
    if (taken === undefined) return
    if (state === 'own') {
      const result = this.#begin(taken)
      if (result !== undefined) onCommitted(result)
    } else if (outcome === undefined) {
      onCommitted(resultOf(taken))
    } else if (state === 'commit' && table.submit() === undefined) {
      this.#taken = taken
      this.#state = 'repair'
    } else {
      onCommitted(refuseAll(taken, outcome, table, hooks))
    }
  }
}

function resultOf({ failures }: Taken): CommitResult {
  return failures.length === 0 ? COMMITTED : failures
}
