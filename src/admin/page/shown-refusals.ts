// ShownRefusals remembers the refusals that the page shows, and finds those that policy allows meanwhile, after each change of policy. A
// refusal that has another reason than policy stays, because no policy takes it back.

import type { AdminState } from '../state.ts'
import { explainBody } from '../explain.ts'
import type { RefusalRow } from './refusals.ts'

/** As many as a viewer shows (page/live.js). */
const SHOWN_MAX = 300
const BY_POLICY: ReadonlySet<RefusalRow['kind']> = new Set(['denied', 'audited', 'drop', 'audit'])

export class ShownRefusals {
  readonly #state: AdminState
  /** Question by the key of the row, the last shown last. */
  readonly #questions = new Map<string, RefusalRow['question']>()
  /** The policy revision in force at the last search. */
  #searched: number

  constructor(state: AdminState) {
    this.#state = state
    this.#searched = state.transition.realizedRevision
  }

  add({ key, kind, reason, question }: RefusalRow): void {
    this.#questions.delete(key)
    if (!BY_POLICY.has(kind) || (reason !== null && reason !== 'policy')) return
    this.#questions.set(key, question)
    if (this.#questions.size <= SHOWN_MAX) return
    const [oldest = ''] = this.#questions.keys()
    this.#questions.delete(oldest)
  }

  /** Forgets all refusals, because no viewer shows them. */
  clear(): void {
    this.#questions.clear()
  }

  /** Yields the key of each refusal that policy allows now, and undefined between two looks. `all`: also without a change of policy. */
  *allowed(all: boolean): Generator<string | undefined> {
    const revision = this.#state.transition.realizedRevision
    if (!all && revision === this.#searched) return
    this.#searched = revision
    for (const [key, question] of [...this.#questions]) {
      const isAllowed = this.#isAllowed(question)
      if (isAllowed) this.#questions.delete(key)
      yield isAllowed ? key : undefined
    }
  }

  #isAllowed(question: RefusalRow['question']): boolean {
    if (question === null) return false
    const answer = explainBody(this.#state, question)
    return answer.kind === 'ok' && answer.value.verdict === 'allow'
  }
}
