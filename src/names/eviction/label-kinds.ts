// LabelKinds tells from a name's label set how the bounds treat the name. A name is exact when a selector without a star matches it, even
// if wildcards match it too. Every other matched name is counted under each wildcard that matches it.

import type { LabelSets } from '../../core/labels.ts'

export class LabelKinds {
  readonly #labelSets: LabelSets
  /** The label set of the last call. Consecutive calls mostly have the same set. */
  #last = -1
  #lastKind: 'wildcard' | 'exact' | 'unmatched' = 'unmatched'

  constructor(labelSets: LabelSets) {
    this.#labelSets = labelSets
  }

  /** Returns true if the label of a selector without a star is in the set. */
  isExact(labels: number): boolean {
    return this.#kindOf(labels) === 'exact'
  }

  /** Returns under how many wildcards a name with these labels is counted. An exact name is counted under none. */
  wildcardsOf(labels: number): number {
    return this.#kindOf(labels) === 'wildcard' ? this.#labelSets.get(labels).fqdnCount : 0
  }

  #kindOf(labels: number): 'wildcard' | 'exact' | 'unmatched' {
    if (labels === this.#last) return this.#lastKind
    const set = this.#labelSets.get(labels)
    const isOfStar = set.labels.every(({ kind, text }) => kind !== 'fqdn' || text.includes('*'))
    this.#last = labels
    this.#lastKind = set.fqdnCount === 0 ? 'unmatched' : isOfStar ? 'wildcard' : 'exact'
    return this.#lastKind
  }
}
