// What an answer teaches about the names inside its chain (`dns.cname-match: chain`; docs/spec/semantics 4): each address belongs to
// every name from the question to the record's owner, so that selectors of any of them select it. A name of the chain is
// learned as if the endpoint had asked it, with the TTL of the whole chain: what holds for names that were asked (bounds,
// lifetimes, selectors added later) holds for it. Used by the learner alone; `read` before the others, for each answer.
// Cost: hashing each name of the chain once an answer, then one `learn` a name and address. Nothing without a chain.

import type { EndpointId } from '../../core/ids.ts'
import { EMPTY_SET } from '../../core/labels.ts'
import { nameLength } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import type { AnswerView } from '../../dns/answer.ts'
import { CHAIN_LINKS_MAX } from '../../dns/chain.ts'
import type { NameCache } from '../../names/name-cache.ts'
import type { SelectorLabels } from '../../names/labels/selector-labels.ts'
import type { AnswerSettings } from './answer-settings.ts'

export interface ChainLinksOptions {
  readonly names: NameCache
  readonly selectorLabels: SelectorLabels
}

/** A HashedName that is filled again and again. */
interface Link {
  wire: Uint8Array
  length: number
  hash: number
  isMatched: boolean
}

export class ChainLinks {
  readonly #to: ChainLinksOptions
  readonly #links = Array.from({ length: CHAIN_LINKS_MAX + 1 }, mkLink)
  #isLeftOut = false

  constructor(options: ChainLinksOptions) {
    this.#to = options
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
      link.wire = answer.linkName(i)
      link.isMatched = settings.matchesLink(link.wire)
      if (!link.isMatched) continue
      isAny = true
      link.length = nameLength(link.wire)
      link.hash = hashOctets(link.wire, 0, link.length)
    }
    return isAny
  }

  /**
   * Teaches the endpoint address i of the answer under every name of the chain up to its owner; it knows the address, as
   * `row`, by the question already. Returns the row by which it sees the address now.
   */
  learn(
    endpoint: EndpointId,
    answer: AnswerView,
    i: number,
    ttl: number,
    now: number,
    row: number,
    grace: number,
  ): number {
    const { names } = this.#to
    const family = answer.families[i] === 4 ? 4 : 6
    this.#isLeftOut = false
    for (let link = 1; link <= answer.owners[i]!; link++) {
      const name = this.#links[link]!
      if (!name.isMatched) continue
      const learned = names.learn(endpoint, name, family, answer.octets, i * 16, ttl, now, grace)
      if (learned !== 0) row = learned
      else if (this.#isSelected(link)) this.#isLeftOut = true
    }
    return row
  }

  /** Whether an address owned by name `owner` of the chain would get labels from a name behind the question. */
  isSelected(owner: number): boolean {
    for (let link = 1; link <= owner; link++) if (this.#isSelected(link)) return true
    return false
  }

  #isSelected(link: number): boolean {
    const { wire, isMatched } = this.#links[link]!
    return isMatched && this.#to.selectorLabels.labelsOf(wire, 0) !== EMPTY_SET
  }
}

function mkLink(): Link {
  return { wire: new Uint8Array(0), length: 0, hash: 0, isMatched: false }
}
