// The flattened entries of an endpoint's rules for one identity, by the selectors that select the identity. Equal inputs give the same array
// for every endpoint while the array is remembered, so that a policy map mostly sees by one comparison that nothing changed.

import type { Identity } from '../core/ids.ts'
import type { Selector, SelectorCache } from '../identity/selector-cache.ts'
import { flatten, type Coverage, type FlatEntry } from '../policy/compile/flatten.ts'

/** What an endpoint's policy says, with its selectors resolved. */
export interface EndpointRules {
  readonly levels: ReadonlyMap<Identity, readonly Coverage[]>
  readonly selectors: ReadonlyMap<Selector, readonly Coverage[]>
}

/** Combinations of selectors remembered for one endpoint's rules. */
const COMBINATIONS_MAX = 16_384

export class FlatRules {
  readonly #selectors: SelectorCache
  /** By the numbers of the selectors, or of one alone by what the rules say of it: mostly that of its whole rule. */
  readonly #flattened = new WeakMap<EndpointRules, Map<unknown, readonly FlatEntry[]>>()

  constructor(options: { readonly selectors: SelectorCache }) {
    this.#selectors = options.selectors
  }

  /** Entries of an identity in use, or of the class or level that has its number. */
  entriesFor(rules: EndpointRules, id: Identity): readonly FlatEntry[] {
    const level = rules.levels.get(id)
    if (level === undefined) return this.entriesOf(rules, this.#selectors.selectorsOf(id))
    return this.#flatten(rules, level, () => level)
  }

  /** Entries of an identity that those selectors select. */
  entriesOf(rules: EndpointRules, selectors: readonly Selector[]): readonly FlatEntry[] {
    const [first] = selectors
    const only = selectors.length === 1 && first && rules.selectors.get(first)
    if (only) return this.#flatten(rules, only, () => only)
    const selecting = selectors.filter((selector) => rules.selectors.has(selector))
    const key = selecting.map(({ id }) => id).join(',')
    return this.#flatten(rules, key, () => coveragesOfSelectors(rules, selecting))
  }

  #flatten(
    rules: EndpointRules,
    key: unknown,
    coverages: () => readonly Coverage[],
  ): readonly FlatEntry[] {
    let cache = this.#flattened.get(rules)
    if (cache === undefined) this.#flattened.set(rules, (cache = new Map()))
    const known = cache.get(key)
    if (known !== undefined) return known
    const entries = flatten(coverages())
    // Answers can make combinations of selectors without end.
    if (cache.size >= COMBINATIONS_MAX) cache.clear()
    cache.set(key, entries)
    return entries
  }
}

/** What rules say of an identity that those selectors select, or of the class or level that has its number. */
export function coveragesOf(
  rules: EndpointRules,
  id: Identity,
  selecting: readonly Selector[],
): readonly Coverage[] {
  return rules.levels.get(id) ?? coveragesOfSelectors(rules, selecting)
}

function coveragesOfSelectors(
  rules: EndpointRules,
  selecting: readonly Selector[],
): readonly Coverage[] {
  return selecting.flatMap((selector) => rules.selectors.get(selector) ?? [])
}
