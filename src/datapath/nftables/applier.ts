// Who may write now: one batch is with the thread at a time, a commit or changes of our own (interfaces that came and went), and a
// commit that comes meanwhile goes next. A refused commit is tried once more with the whole table written anew; only when that is refused
// too are its entries at fault, and it is taken back.

import { COMMITTED, type CommitResult } from '../datapath.ts'
import { refuseAll, type Taken } from './commit.ts'
import type { Hooks } from './hooks.ts'
import type { Table } from './tables/table.ts'

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
