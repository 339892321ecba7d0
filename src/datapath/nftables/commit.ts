// Commits on their way into the tables and to the thread, one at a time. A refused commit is tried once more with the whole table written
// anew. When the kernel refuses it again, its entries are at fault, and the commit is taken back out of the tables, because the committer
// believes that a refused entry is not in force.

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

/** What a commit came to before the kernel was asked. */
export interface Taken {
  /** Entries that there was no room for. */
  readonly failures: CommitFailure[]
  readonly counts: { policy: number; prefixes: number; endpoints: number }
  /** How many entries each section had, for a refusal of all. */
  readonly sizes: readonly [section: CommitFailure['section'], action: Action, size: number][]
  readonly policies: { readonly entry: PolicyEntry; readonly isThere: boolean }[]
  /** Prefixes with what they had before; identity 0: nothing. */
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

/** Takes a commit back and names every entry of it, those that had no room by that. */
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

/** What stood there before. */
function note(batch: PrefixBatch, i: number, { prefixes }: Table, taken: Taken): void {
  taken.prefixes.add(
    batch.family(i),
    batch.octets(i),
    0,
    batch.length(i),
    identity(prefixes.beforeIdentity),
    identity(prefixes.beforeClass),
    batch.scope(i),
  )
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
  readonly #to: ApplierOptions
  /** What the thread is at. */
  #state: 'idle' | 'own' | 'commit' | 'repair' = 'idle'
  /** The commit that is with the thread, or waits for it. */
  #taken: Taken | undefined
  /** Whether there is something to be written when the thread is done. */
  #again = false

  constructor(options: ApplierOptions) {
    this.#to = options
  }

  get isIdle(): boolean {
    return this.#state === 'idle'
  }

  /** As `Datapath.commit`. */
  commit(taken: Taken): CommitResult | undefined {
    if (this.#taken !== undefined) throw new Error('Cannot commit: a commit is under way')
    if (this.#state === 'idle') return this.#begin(taken)
    this.#taken = taken
    return undefined
  }

  /** Writes changes that nobody waits for, now or when the thread is done. */
  flush(): void {
    this.#again = this.#state !== 'idle'
    if (this.#again) return
    if (this.#to.table.submit() === undefined) this.#state = 'own'
  }

  /** The thread may be done: takes what came of it. With `wait` it is done when this returns, and a commit that waited, too. */
  finish(wait: boolean): void {
    do {
      if (this.#state === 'idle') return
      const done = this.#to.table.take(wait)
      if (done === 'busy') return
      this.#ended(done.outcome)
      if (this.#again || this.#to.table.hasMore) this.flush()
    } while (wait)
  }

  #begin(taken: Taken): CommitResult | undefined {
    const { table, hooks } = this.#to
    const outcome = table.submit()
    if (outcome === undefined) {
      this.#taken = taken
      this.#state = 'commit'
      return undefined
    }
    return outcome === 'none' ? resultOf(taken) : refuseAll(taken, outcome, table, hooks)
  }

  #ended(outcome: string | undefined): void {
    const { table, hooks, onCommitted } = this.#to
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
