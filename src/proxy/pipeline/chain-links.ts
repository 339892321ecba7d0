// What an answer teaches about the names inside its chain (`dns.cname-match: chain`; docs/spec/semantics 4): each address belongs to
// every name from the question to the record's owner, so that selectors of any of them select it. A name of the chain is
// learned as if the endpoint had asked it, with the TTL of the whole chain: what holds for names that were asked (bounds,
// lifetimes, selectors added later) holds for it. Used by the learner alone; `read` before the others, for each answer.
// Cost: hashing each name of the chain once an answer, then one `learn` a name and address. Nothing without a chain.

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

export interface ChainLinksOptions {
  readonly names: NameCache
  readonly selectorLabels: SelectorLabels
}

/** A name of a chain; one object that is filled again. */
interface Link {
  readonly name: NameKey
  isMatched: boolean
}

export class ChainLinks {
  readonly #options: ChainLinksOptions
  readonly #links = Array.from({ length: CHAIN_LINKS_MAX + 1 }, mkLink)
  #isLeftOut = false

  constructor(options: ChainLinksOptions) {
    this.#options = options
  }

  /** Whether the last `learn` left a name out that selectors match. */
  get isLeftOut(): boolean {
    return this.#isLeftOut
  }

  /** Takes the names of an answer's chain, until the view reads another; false when none of them is matched. */
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
   * Teaches the address of a lesson under every name of the chain up to its owner. The endpoint sees the address as `row` by
   * the question already. Returns the row by which the endpoint sees the address now.
   */
  learn(lesson: Lesson, owner: number, row: number): number {
    const { names } = this.#options
    const question = lesson.name
    let seen = row
    this.#isLeftOut = false
    for (let link = 1; link <= owner; link++) {
      const { name, isMatched } = this.#links[link]!
      if (!isMatched) continue
      lesson.name = name
      const learned = names.learn(lesson)
      if (learned !== 0) seen = learned
      else if (this.#isSelected(link)) this.#isLeftOut = true
    }
    lesson.name = question
    return seen
  }

  /** Whether an address owned by name `owner` of the chain would get labels from a name behind the question. */
  isSelected(owner: number): boolean {
    for (let link = 1; link <= owner; link++) if (this.#isSelected(link)) return true
    return false
  }

  #isSelected(link: number): boolean {
    const { name, isMatched } = this.#links[link]!
    return isMatched && this.#options.selectorLabels.labelsOf(name.wire, 0) !== EMPTY_SET
  }
}

function mkLink(): Link {
  return { name: new NameKey(), isMatched: false }
}
