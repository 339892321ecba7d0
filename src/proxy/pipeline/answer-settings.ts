// What holds for the answer at hand: the configuration, or what policy documents of the endpoint say about the name
// (policy/compile/answer-rules.ts). Looked up once an answer, before it is read; the fields hold until the next `look`. Where no
// document says anything it costs one look into an empty map.

import type { EndpointId } from '../../core/ids.ts'
import { GRACE_AS_IT_IS } from '../../names/lesson.ts'
import type { AnswerDefaults, AnswerRules, Mutable } from '../../policy/compile/answer-rules.ts'

export interface AnswerSettingsOptions {
  readonly policies: { answerRulesOf(endpoint: EndpointId): AnswerRules | undefined }
  readonly defaults: AnswerDefaults
}

export class AnswerSettings {
  readonly #options: AnswerSettingsOptions
  readonly #now: Mutable<AnswerDefaults>
  readonly #ofLink: Mutable<AnswerDefaults>
  #rules: AnswerRules | undefined
  #isPlain = true

  constructor(options: AnswerSettingsOptions) {
    this.#options = options
    this.#now = { ...options.defaults }
    this.#ofLink = { ...options.defaults }
  }

  /** Seconds. */
  get minTtl(): number {
    return this.#now.minTtl
  }

  /** Seconds; GRACE_AS_IT_IS while no document ever said anything, so that pairs need not be written for it. */
  get grace(): number {
    return this.#isPlain ? GRACE_AS_IT_IS : this.#now.grace
  }

  get svcb(): AnswerDefaults['svcb'] {
    return this.#now.svcb
  }

  /** Looks up what holds for an answer to the endpoint about the wire name. */
  look(endpoint: EndpointId, name: Uint8Array): void {
    const { policies, defaults } = this.#options
    const rules = policies.answerRulesOf(endpoint)
    if (rules === undefined && this.#rules === undefined) return
    this.#rules = rules
    this.#isPlain = false
    if (rules !== undefined) return rules.read(name, defaults, this.#now)
    this.#now.minTtl = defaults.minTtl
    this.#now.grace = defaults.grace
    this.#now.svcb = defaults.svcb
  }

  /** Whether names inside the answer's chain may be matched at all. */
  get mayMatchLinks(): boolean {
    return this.#rules !== undefined || this.#options.defaults.cnameMatch === 'chain'
  }

  /** Whether this name inside the answer's chain is matched. */
  matchesLink(name: Uint8Array): boolean {
    const { defaults } = this.#options
    if (this.#rules === undefined) return defaults.cnameMatch === 'chain'
    this.#rules.read(name, defaults, this.#ofLink)
    return this.#ofLink.cnameMatch === 'chain'
  }
}
