// The kind of selectors behind a label set, which says how bounds treat a name. A name that a selector without a star matches is
// exact, even when wildcards match it too. All other matched names count under each wildcard that matches them.

import type { LabelSets } from '../../core/labels.ts'

export class LabelKinds {
  readonly #labelSets: LabelSets
  /** The label set that was looked at last: most names have the same. */
  #last = -1
  #lastKind: 'wildcard' | 'exact' | 'unmatched' = 'unmatched'

  constructor(labelSets: LabelSets) {
    this.#labelSets = labelSets
  }

  /** Whether a selector without a star is among the labels. */
  isExact(labels: number): boolean {
    return this.#kindOf(labels) === 'exact'
  }

  /** Under how many wildcards a name with these labels counts; none when it is exact. */
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
