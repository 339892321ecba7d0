// FallbackIdentities finds the fallback identity for a label set that can get no identity of its own. A candidate is an identity in use
// that differs from the set only by missing `fqdn:` labels. The candidate with the most labels wins; among equals, the one with the
// lowest number (docs/spec/semantics 3, "At the bound"). Labels of other kinds must all be there, because a missing `cidr:` label could
// turn a deny, an exception or a negative selector into access. A fallback identity never has a label that the set does not have.
//
// Each identity is in the list of its first fqdn label. A search reads the lists of the set's fqdn labels, so it sees no identity twice.

import { addTo, removeFrom, type FewSet } from '../core/tables/few.ts'
import type { Identity } from '../core/ids.ts'
import type { Label, LabelSets } from '../core/labels.ts'

export interface Candidate {
  readonly identity: Identity
  readonly set: number
  /** The set without its fqdn labels. */
  readonly baseSet: number
  readonly references: number
}

export class FallbackIdentities<Entry extends Candidate> {
  readonly #sets: LabelSets
  readonly #byFirst = new Map<number, FewSet<Entry>>()

  constructor(options: { readonly labelSets: LabelSets }) {
    this.#sets = options.labelSets
  }

  add(entry: Entry): void {
    const first = this.#firstOf(entry)
    if (first !== undefined) addTo(this.#byFirst, first, entry)
  }

  remove(entry: Entry): void {
    const first = this.#firstOf(entry)
    if (first !== undefined) removeFrom(this.#byFirst, first, entry)
  }

  /** Returns the fallback identity for a set with fqdn labels. Undefined: no identity with a fqdn label fits. */
  find(set: number, baseSet: number): Entry | undefined {
    const wanted = new Set<Label>(this.#sets.get(set).labels)
    let best: Entry | undefined
    let bestSize = 0
    for (const { id, kind } of wanted) {
      if (kind !== 'fqdn') continue
      for (const entry of this.#byFirst.get(id) ?? []) {
        if (entry.references === 0 || entry.baseSet !== baseSet) continue
        const { labels } = this.#sets.get(entry.set)
        const isBetter =
          labels.length > bestSize ||
          (labels.length === bestSize && best !== undefined && entry.identity < best.identity)
        if (!isBetter || !labels.every((label) => wanted.has(label))) continue
        best = entry
        bestSize = labels.length
      }
    }
    return best
  }

  #firstOf(entry: Entry): number | undefined {
    return this.#sets.get(entry.set).labels.find(({ kind }) => kind === 'fqdn')?.id
  }
}
