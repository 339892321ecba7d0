// Carries a change of configuration through to the datapath, in slices: prefixes inside changed ones and
// names under changed selectors get their labels, endpoints that went are forgotten, each slice
// committed; when all labels are up to date, policy takes its next step (policy-control.ts), until there
// is none. Also the one place that says whether desired and realized state agree.

import type { CoreState } from './core-state.ts'
import type { PolicyControl } from './policy-control.ts'

const ROWS_PER_LOOK = 128

export class Transition {
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #rowsPerLook: number
  #open = false
  #realized = 0

  constructor(options: {
    readonly core: CoreState
    readonly policies: PolicyControl
    /** Rows between two commits, and looks at the clock. */
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
    const { clock, committer, departures, ipcache } = this.#core
    if (!this.#open) return true
    const until = clock.now() + milliseconds
    do {
      const labelled = this.#label(until)
      const forgotten = departures.step(this.#rowsPerLook)
      committer.commit()
      if (!labelled) return false
      if (!this.#policies.advance() && forgotten) {
        // Again: identities that the last commit set free take their policy entries along.
        committer.commit()
        ipcache.freeRetired()
        this.#open = false
        this.#realized = this.#policies.revision
        return true
      }
    } while (clock.now() < until)
    return false
  }

  /** Brings labels up to date until the time is over; true when they are. */
  #label(until: number): boolean {
    const { clock, rederive, relabel } = this.#core
    for (;;) {
      const rows = this.#rowsPerLook
      if (rederive.step(rows) && relabel.step(rows) && !rederive.pending) return true
      if (clock.now() >= until) return false
    }
  }

  /** Everything at once, for the start. */
  finish(): void {
    while (!this.step(Number.POSITIVE_INFINITY));
  }
}
