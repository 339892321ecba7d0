// FlatRules flattens an endpoint's rules into the policy entries of one identity. The result depends on the selectors that select the
// identity. FlatRules remembers results. Equal inputs give the same array for every endpoint, so a policy map mostly needs one comparison
// to find that nothing changed.

import type { Identity } from '../core/ids.ts'
import type { Selector, SelectorCache } from '../identity/selector-cache.ts'
import { flatten, type Coverage, type FlatEntry } from '../policy/compile/flatten.ts'

/** The rules of an endpoint's policy, with its selectors resolved. */
export interface EndpointRules {
  /** The rules about a whole class of addresses, or about any address (identity 0). */
  readonly levels: ReadonlyMap<Identity, readonly Coverage[]>
  /** The rules about the identities that a selector selects. */
  readonly selectors: ReadonlyMap<Selector, readonly Coverage[]>
}

/** How many combinations of selectors are remembered for one endpoint's rules. */
const COMBINATIONS_MAX = 16_384

export class FlatRules {
  readonly #selectors: SelectorCache
  /** The key is the list of selector numbers. For one selector or level the key is its coverages, which all selectors of a rule share. */
  readonly #flattened = new WeakMap<EndpointRules, Map<unknown, readonly FlatEntry[]>>()

  constructor(options: { readonly selectors: SelectorCache }) {
    this.#selectors = options.selectors
  }

  /** Returns the entries for an identity. The number can also stand for a class, or 0 for any address. */
  entriesFor(rules: EndpointRules, id: Identity): readonly FlatEntry[] {
    const level = rules.levels.get(id)
    if (level === undefined) return this.entriesOf(rules, this.#selectors.selectorsOf(id))
    return this.#flatten(rules, level, () => level)
  }

  /** Returns the entries for an identity that `selectors` select. */
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
    // Answers can make an unlimited number of combinations of selectors.
    if (cache.size >= COMBINATIONS_MAX) cache.clear()
    cache.set(key, entries)
    return entries
  }
}

/** Returns what rules say about `id`: about the class or level with this number, else about an identity that `selecting` select. */
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
