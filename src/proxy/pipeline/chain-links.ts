// ChainLinks learns addresses under the names inside an answer's CNAME chain (`dns.cname-match: chain`; docs/spec/semantics 4).
// An address belongs to every name from the question to the record's owner, so a selector of any of these names selects it.
// The endpoint learns each name of the chain as if it had asked for this name, with the TTL of the whole chain. The same
// bounds, lifetimes and later selectors apply. Only the learner uses this class. It calls `read` first, for each answer.
// Cost: one hash per name of the chain, then one `learn` per name and address. An answer without a chain costs nothing.

import { EMPTY_SET } from '../../core/labels.ts'
import { nameLength } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import type { AnswerView } from '../../dns/answer.ts'
import { CHAIN_LINKS_MAX } from '../../dns/chain.ts'
import type { Lesson } from '../../names/lesson.ts'
import type { NameCache } from '../../names/name-cache.ts'
import { NameKey } from '../../names/tables/name-table.ts'
import type { SelectorLabels } from '../../names/labels/selector-labels.ts'
import type { AnswerSettings } from './answer-settings.ts'

/** A name of a chain. Each answer overwrites the objects of the answer before. */
interface Link {
  readonly name: NameKey
  isMatched: boolean
}

export class ChainLinks {
  readonly #names: NameCache
  readonly #selectorLabels: SelectorLabels
  readonly #links = Array.from({ length: CHAIN_LINKS_MAX + 1 }, mkLink)
  #isLeftOut = false

  constructor(names: NameCache, selectorLabels: SelectorLabels) {
    this.#names = names
    this.#selectorLabels = selectorLabels
  }

  /** True if the last `learn` could not learn a name that a selector matches. */
  get isLeftOut(): boolean {
    return this.#isLeftOut
  }

  /** Takes the names of an answer's chain. They stay valid until the view reads another answer. Returns false if none can match. */
  read(answer: AnswerView, settings: AnswerSettings): boolean {
    if (answer.links === 0 || !settings.mayMatchLinks) return false
    let isAny = false
    for (let i = 1; i <= answer.links; i++) {
      const link = this.#links[i]!
      const wire = answer.linkName(i)
      link.isMatched = settings.matchesLink(wire)
      const length = link.isMatched ? nameLength(wire) : 0
      link.name.set(wire, length, hashOctets(wire, 0, length))
      isAny ||= link.isMatched
    }
    return isAny
  }

  /**
   * Learns the address of a lesson under every name of the chain, up to name number `owner`, the owner of the address record.
   * `row` is the address's row after learning the question's name. Returns the row that holds the endpoint's view of the address now.
   */
  learn(lesson: Lesson, owner: number, row: number): number {
    const question = lesson.name
    let seen = row
    this.#isLeftOut = false
    for (let link = 1; link <= owner; link++) {
      const { name, isMatched } = this.#links[link]!
      if (!isMatched) continue
      lesson.name = name
      const learned = this.#names.learn(lesson)
      if (learned !== 0) seen = learned
      else if (this.#isSelected(link)) this.#isLeftOut = true
    }
    lesson.name = question
    return seen
  }

  /** Returns true if a name of the chain after the question, up to number `owner`, would give the address labels. */
  isSelected(owner: number): boolean {
    for (let link = 1; link <= owner; link++) if (this.#isSelected(link)) return true
    return false
  }

  #isSelected(link: number): boolean {
    const { name, isMatched } = this.#links[link]!
    return isMatched && this.#selectorLabels.labelsOf(name.wire, 0) !== EMPTY_SET
  }
}

function mkLink(): Link {
  return { name: new NameKey(), isMatched: false }
}
