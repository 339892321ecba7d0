// The fallback identity of a label set that can get none of its own: of those in use, the largest that differs only by missing
// `fqdn:` labels, ties by lowest number (docs/spec/semantics 3, "At the bound"). A fallback never lacks a label of another kind: a
// missing `cidr:` could turn a deny, an exception or a negative selector into access. A fallback never has a label more.
//
// An identity is filed under the first of its fqdn labels, so that a search sees each candidate once and no others.

import { addTo, removeFrom, type FewSet } from '../core/tables/few-set.ts'
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

  /** The fallback for a set with fqdn labels; undefined when only the set without them fits. */
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
