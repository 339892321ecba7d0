// FlatRules flattens an endpoint's rules into the policy entries of one identity. The result depends on the selectors that select the
// identity. FlatRules remembers results. Equal inputs give the same array for every endpoint, so a policy map mostly needs one comparison
// to find that nothing changed.
//
// If rules are `complete` (policy/compile/tiers.ts), the entries of an identity include the rules about its class. The class follows from
// the labels of the identity. Only a known endpoint and a resource can share a label set, and no rule tells these two classes apart.

import type { Identity } from '../core/ids.ts'
import type { Selector, SelectorCache } from '../identity/selector-cache.ts'
import type { LabelSet, LabelSets } from '../core/labels.ts'
import {
  ENDPOINT_CLASS,
  HOST,
  RESERVED_NAMES,
  WORLD_IPV4,
  WORLD_IPV6,
} from '../identity/reserved.ts'
import { flatten, type Coverage, type FlatEntry } from '../policy/compile/flatten.ts'
import { evaluate, yieldTo } from '../policy/compile/tiers.ts'

/** The rules of an endpoint's policy, with its selectors resolved. */
export interface EndpointRules {
  /** The rules about a whole class of addresses, or about any address (identity 0). */
  readonly levels: ReadonlyMap<Identity, readonly Coverage[]>
  /** The rules about the identities that a selector selects. */
  readonly selectors: ReadonlyMap<Selector, readonly Coverage[]>
  /** As CompiledEntries.complete. */
  readonly complete: boolean
}

/** How many combinations of selectors are remembered for one endpoint's rules. */
const COMBINATIONS_MAX = 16_384

export class FlatRules {
  readonly #selectors: SelectorCache
  readonly #sets: LabelSets
  readonly #setOf: (id: Identity) => number | undefined
  /** The key is the list of selector numbers. For one selector or level the key is its coverages, which all selectors of a rule share. */
  readonly #flattened = new WeakMap<EndpointRules, Map<unknown, readonly FlatEntry[]>>()

  constructor(options: {
    readonly selectors: SelectorCache
    readonly labelSets: LabelSets
    /** Returns the label set of an identity that is in use. */
    readonly setOf: (id: Identity) => number | undefined
  }) {
    this.#selectors = options.selectors
    this.#sets = options.labelSets
    this.#setOf = options.setOf
  }

  /** Returns the entries for an identity. The number can also stand for a class, or 0 for any address. */
  entriesFor(rules: EndpointRules, id: Identity): readonly FlatEntry[] {
    const level = rules.levels.get(id)
    if (level !== undefined) return this.#flatten(rules, level, () => ofLevel(rules, level))
    const selectors = this.#selectors.selectorsOf(id)
    if (!rules.complete) return this.#entriesOf(rules, selectors)
    const set = this.#setOf(id)
    return set === undefined ? [] : this.#completeEntries(rules, selectors, set)
  }

  /** Returns the entries for an identity with this label set, which `selectors` select. */
  entriesOf(
    rules: EndpointRules,
    selectors: readonly Selector[],
    set: number,
  ): readonly FlatEntry[] {
    return rules.complete
      ? this.#completeEntries(rules, selectors, set)
      : this.#entriesOf(rules, selectors)
  }

  #entriesOf(rules: EndpointRules, selectors: readonly Selector[]): readonly FlatEntry[] {
    const [first] = selectors
    const only = selectors.length === 1 && first && rules.selectors.get(first)
    if (only) return this.#flatten(rules, only, () => flatten(only, evaluate))
    const selecting = selectors.filter((selector) => rules.selectors.has(selector))
    const key = selecting.map(({ id }) => id).join(',')
    return this.#flatten(rules, key, () =>
      flatten(coveragesOfSelectors(rules, selecting), evaluate),
    )
  }

  #completeEntries(
    rules: EndpointRules,
    selectors: readonly Selector[],
    set: number,
  ): readonly FlatEntry[] {
    const selecting = selectors.filter((selector) => rules.selectors.has(selector))
    if (selecting.length === 0) return []
    const addressClass = classOf(this.#sets.get(set))
    const key = `${addressClass}: ${selecting.map(({ id }) => id).join(',')}`
    return this.#flatten(rules, key, () => {
      const ofClass = rules.levels.get(addressClass) ?? []
      return flatten([...coveragesOfSelectors(rules, selecting), ...ofClass], evaluate)
    })
  }

  #flatten(
    rules: EndpointRules,
    key: unknown,
    make: () => readonly FlatEntry[],
  ): readonly FlatEntry[] {
    let cache = this.#flattened.get(rules)
    if (cache === undefined) this.#flattened.set(rules, (cache = new Map()))
    const known = cache.get(key)
    if (known !== undefined) return known
    const entries = make()
    // Answers can make an unlimited number of combinations of selectors.
    if (cache.size >= COMBINATIONS_MAX) cache.clear()
    cache.set(key, entries)
    return entries
  }
}

/** Returns the entries of a class, or of any address. */
function ofLevel(rules: EndpointRules, level: readonly Coverage[]): readonly FlatEntry[] {
  const entries = flatten(level, evaluate)
  return rules.complete ? entries.map(yieldTo) : entries
}

const CLASS_OF_LABEL: ReadonlyMap<string, Identity> = new Map(
  [HOST, WORLD_IPV4, WORLD_IPV6].map((each) => [RESERVED_NAMES.get(each) ?? '', each] as const),
)

/** Returns the class of the addresses with these labels. Stands for RESOURCE_CLASS too, where it returns ENDPOINT_CLASS. */
function classOf({ labels }: LabelSet): Identity {
  for (const { text } of labels) {
    const found = CLASS_OF_LABEL.get(text)
    if (found !== undefined) return found
  }
  return ENDPOINT_CLASS
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
