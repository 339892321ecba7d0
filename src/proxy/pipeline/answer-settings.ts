// AnswerSettings holds the settings for one answer: minimum TTL, grace, SVCB and CNAME matching. A policy document of the
// endpoint can give settings for the name (policy/compile/answer-rules.ts); otherwise the configuration's settings apply.
// Call `look` before the answer is read. The fields stay valid until the next `look`. If no document gives settings, a
// `look` costs one lookup in an empty map.

import type { EndpointId } from '../../core/ids.ts'
import { GRACE_AS_IT_IS } from '../../names/lesson.ts'
import type { AnswerDefaults, AnswerRules, Mutable } from '../../policy/compile/answer-rules.ts'

/** The part of PolicyControl that AnswerSettings uses. */
interface AnswerPolicies {
  answerRulesOf(endpoint: EndpointId): AnswerRules | undefined
}

export class AnswerSettings {
  readonly #policies: AnswerPolicies
  readonly #defaults: AnswerDefaults
  readonly #now: Mutable<AnswerDefaults>
  readonly #ofLink: Mutable<AnswerDefaults>
  #rules: AnswerRules | undefined
  #isPlain = true

  constructor(policies: AnswerPolicies, defaults: AnswerDefaults) {
    this.#policies = policies
    this.#defaults = defaults
    this.#now = { ...defaults }
    this.#ofLink = { ...defaults }
  }

  /** Minimum TTL in seconds. */
  get minTtl(): number {
    return this.#now.minTtl
  }

  /** Grace in seconds. Until a document gives settings, it is GRACE_AS_IT_IS: entries keep the grace that they have. */
  get grace(): number {
    return this.#isPlain ? GRACE_AS_IT_IS : this.#now.grace
  }

  get svcb(): AnswerDefaults['svcb'] {
    return this.#now.svcb
  }

  /** Looks up the settings for an answer to `endpoint`. `name` is the question's name in lower-case wire format. */
  look(endpoint: EndpointId, name: Uint8Array): void {
    const defaults = this.#defaults
    const rules = this.#policies.answerRulesOf(endpoint)
    if (rules === undefined && this.#rules === undefined) return
    this.#rules = rules
    this.#isPlain = false
    if (rules !== undefined) return rules.read(name, defaults, this.#now)
    this.#now.minTtl = defaults.minTtl
    this.#now.grace = defaults.grace
    this.#now.svcb = defaults.svcb
  }

  /** True if selectors can match names inside the answer's CNAME chain. */
  get mayMatchLinks(): boolean {
    return this.#rules !== undefined || this.#defaults.cnameMatch === 'chain'
  }

  /** Returns true if selectors can match this name of the answer's CNAME chain. */
  matchesLink(name: Uint8Array): boolean {
    const defaults = this.#defaults
    if (this.#rules === undefined) return defaults.cnameMatch === 'chain'
    this.#rules.read(name, defaults, this.#ofLink)
    return this.#ofLink.cnameMatch === 'chain'
  }
}
