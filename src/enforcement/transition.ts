// Carries a change of configuration through to the datapath, in slices. Prefixes inside changed ones and names under changed selectors
// get their labels, and entries of removed endpoints are forgotten; each slice is committed. Once all labels are in force, policy takes
// its next step (policy-control.ts), until there is none. With a slow datapath a step waits for the commit before. Only the
// transition says whether desired and realized state agree.

import { invariant } from '../core/invariant.ts'
import type { CoreState } from './core-state.ts'
import type { PolicyControl } from './policy-control.ts'

const ROWS_PER_LOOK = 128

/** `label`: labels are brought up to date. `advance`: they are, and once in force policy takes its next step. `close`: there was
 *  no next step, and the transition ends once all is in force. */
type Stage = 'label' | 'advance' | 'close'

export class Transition {
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #rowsPerLook: number
  #open = false
  #stage: Stage = 'label'
  /** The revision that has to be in force before the stage goes on. */
  #needed = 0
  /** Whether all entries of removed endpoints were forgotten when labels were up to date. */
  #forgotten = false
  #realized = 0
  #waiting: (() => void)[] = []

  constructor(options: {
    readonly core: CoreState
    readonly policies: PolicyControl
    /** Rows between two commits, and looks at the clock. */
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

  get pending(): boolean {
    return this.#open
  }

  /** Whether the next step has to wait for the datapath: `whenReady` says when. */
  get isWaiting(): boolean {
    const { committer } = this.#core
    return committer.isUnderWay && committer.revision < this.#needed
  }

  /** Calls `wake` once when `isWaiting` has become false. */
  whenReady(wake: () => void): void {
    this.#waiting.push(wake)
  }

  /** Call after a change: `step` then has work until it returns true. */
  begin(): void {
    this.#open = true
    this.#stage = 'label'
  }

  /** Works for at most about `milliseconds` and commits; true when all is up to date and in force. */
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
        // Once more: policy entries go with the identities that the last commit freed.
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

  /** Everything at once, with a datapath that applies at once. */
  finish(): void {
    while (!this.step(Number.POSITIVE_INFINITY)) {
      invariant(!this.isWaiting, 'the datapath applies commits at once')
    }
  }

  /** Everything, for the start: waits for the datapath where it takes its time. */
  async finished(): Promise<void> {
    while (!this.step(Number.POSITIVE_INFINITY)) {
      if (this.isWaiting) await new Promise<void>((resolve) => this.whenReady(resolve))
    }
  }

  /** Whether labels are to be brought up to date again. */
  get #isStale(): boolean {
    return this.#core.rederive.pending || this.#core.relabel.pending
  }

  /** Brings labels up to date until the time is over and commits; true when they are. */
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
