// Brings labels up to date after configuration changed, in slices: prefixes inside changed ones, names under
// changed selectors, each slice committed; at the end what is no longer needed is removed. Also the one
// place that says whether desired and realized state agree.

import type { CoreState } from './core-state.ts'
import type { PolicyControl } from './policy-control.ts'

const ROWS_PER_LOOK = 64

export class Transition {
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #rowsPerLook: number
  #open = false
  #realized = 0

  constructor(options: {
    readonly core: CoreState
    readonly policies: PolicyControl
    /** Rows between two looks at the clock. */
    readonly rowsPerLook?: number
  }) {
    this.#core = options.core
    this.#policies = options.policies
    this.#rowsPerLook = options.rowsPerLook ?? ROWS_PER_LOOK
  }

  /** The last policy revision that the datapath enforces completely. */
  get realizedRevision(): number {
    return this.#realized
  }

  get pending(): boolean {
    return this.#open
  }

  /** Something changed: `step` has work until it says otherwise. */
  begin(): void {
    this.#open = true
  }

  /** Works for at most about `milliseconds` and commits; true when all is up to date. */
  step(milliseconds: number): boolean {
    const { clock, rederive, relabel, committer } = this.#core
    if (!this.#open) return true
    const until = clock.now() + milliseconds
    let done = false
    do {
      done =
        rederive.step(this.#rowsPerLook) && relabel.step(this.#rowsPerLook) && !rederive.pending
    } while (!done && clock.now() < until)
    committer.commit()
    if (!done) return false
    this.#policies.finishTransition()
    // Twice: identities that the first commit set free take their policy entries along in the second.
    committer.commit()
    committer.commit()
    this.#open = false
    this.#realized = this.#policies.revision
    return true
  }

  /** Everything at once, for the start. */
  finish(): void {
    while (!this.step(Number.POSITIVE_INFINITY));
  }
}
