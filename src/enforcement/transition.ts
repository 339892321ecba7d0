// Transition brings a change of configuration into force in the datapath, in slices. First it updates labels: those of prefixes inside
// changed prefixes, and those of names that changed selectors match. It also forgets the entries of removed endpoints. It commits each
// slice. When the datapath has confirmed all labels, policy does its next phase (policy-control.ts). Then Transition updates labels again,
// until policy has no phase left. Only Transition knows if the realized state equals the desired state.

import { invariant } from '../core/invariant.ts'
import type { CoreState } from './core-state.ts'
import type { PolicyControl } from './policy-control.ts'

const ROWS_PER_LOOK = 128

/**
 * `label`: Transition updates labels.
 * `advance`: all labels are committed. When the datapath has confirmed them, policy does its next phase.
 * `close`: policy has no phase left. The transition ends when the datapath has confirmed everything.
 */
type Stage = 'label' | 'advance' | 'close'

export class Transition {
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #rowsPerLook: number
  #open = false
  #stage: Stage = 'label'
  /** The revision that has to be in force before the stage can continue. */
  #needed = 0
  /** True if the last slice forgot the last entries of removed endpoints. */
  #forgotten = false
  #realized = 0
  #waiting: (() => void)[] = []

  constructor(options: {
    readonly core: CoreState
    readonly policies: PolicyControl
    /** How many table rows (prefixes, names, entries) are handled between two commits, and between two reads of the clock. */
    readonly rowsPerLook?: number
  }) {
    this.#core = options.core
    this.#policies = options.policies
    this.#rowsPerLook = options.rowsPerLook ?? ROWS_PER_LOOK
    this.#core.committer.onEnd(() => this.#wake())
  }

  /** The last policy revision that the datapath enforces completely. */
  get realizedRevision(): number {
    return this.#realized
  }

  /** True from `begin` until everything is in force. */
  get pending(): boolean {
    return this.#open
  }

  /** True while `step` can do nothing, because the datapath has not confirmed the last commit. `whenReady` reports the end. */
  get isWaiting(): boolean {
    const { committer } = this.#core
    return committer.isUnderWay && committer.revision < this.#needed
  }

  /** Calls `wake` once when `isWaiting` has become false. */
  whenReady(wake: () => void): void {
    this.#waiting.push(wake)
  }

  /** Call this after a change. Then call `step` until it returns true. */
  begin(): void {
    this.#open = true
    this.#stage = 'label'
  }

  /** Works for about `milliseconds` at most, and commits. Returns true when everything is in force. */
  step(milliseconds: number): boolean {
    const { clock, committer, ipcache } = this.#core
    if (!this.#open) return true
    const until = clock.now() + milliseconds
    do {
      if (this.#stage === 'label' && !this.#label(until)) return false
      if (this.isWaiting) return false
      if (this.#stage === 'advance') {
        const isMore = this.#isStale || this.#policies.advance(until) || !this.#forgotten
        if (isMore) {
          this.#stage = 'label'
          continue
        }
        // The last commit freed identities. This commit removes their policy entries.
        committer.commit()
        this.#waitFor('close')
        if (this.isWaiting) return false
      }
      ipcache.freeRetired()
      this.#open = false
      this.#stage = 'label'
      this.#realized = this.#policies.revision
      return true
    } while (clock.now() < until)
    return false
  }

  /** Does all steps in one call. Only for a datapath that has applied a commit when `commit` returns. */
  finish(): void {
    while (!this.step(Number.POSITIVE_INFINITY)) {
      invariant(!this.isWaiting, 'the datapath applies commits at once')
    }
  }

  /** Does all steps, and waits for a slow datapath between them. Used at the start. */
  async finished(): Promise<void> {
    while (!this.step(Number.POSITIVE_INFINITY)) {
      if (this.isWaiting) await new Promise<void>((resolve) => this.whenReady(resolve))
    }
  }

  /** True if labels have to be updated again. */
  get #isStale(): boolean {
    return this.#core.rederive.pending || this.#core.relabel.pending
  }

  /** Updates labels until `until` (`Clock.now()`), and commits. Returns true when all labels are up to date. */
  #label(until: number): boolean {
    const { clock, rederive, relabel, endpointRemoval, committer } = this.#core
    const rows = this.#rowsPerLook
    let done = false
    do {
      done = rederive.step(rows) && relabel.step(rows) && !rederive.pending
    } while (!done && clock.now() < until)
    this.#forgotten = endpointRemoval.step(rows)
    committer.commit()
    if (done) this.#waitFor('advance')
    return done
  }

  #waitFor(stage: Stage): void {
    this.#stage = stage
    this.#needed = this.#core.committer.desired
  }

  #wake(): void {
    if (this.#waiting.length === 0 || this.isWaiting) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }
}
