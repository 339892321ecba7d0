// FQDN selectors in force -> the labels of a name. Selectors are entered and taken out one by one; each
// change begins a new epoch, by which names know that their labels must be looked at again.

import { invariant } from '../core/invariant.ts'
import { EMPTY_SET, type Label, type LabelSets } from '../core/labels.ts'
import type { FqdnSelector } from '../identity/selector-cache.ts'
import { IdList } from '../policy/id-list.ts'
import { PatternIndex } from '../policy/pattern-index.ts'
import type { NameLabeller } from './fact-labels.ts'

export class SelectorLabels implements NameLabeller {
  readonly #sets: LabelSets
  readonly #index = new PatternIndex()
  readonly #labels = new Map<number, Label>()
  readonly #matched = new IdList()
  readonly #scratch: Label[] = []
  #epoch = 1

  constructor(options: { readonly labelSets: LabelSets }) {
    this.#sets = options.labelSets
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Label sets that are retained here; for checks. */
  *heldSets(): Iterable<number> {
    for (const label of this.#labels.values()) yield this.#sets.internLabels([label])
  }

  /** Makes names that the selector matches carry its label; nothing when they do. */
  ensure(selector: FqdnSelector): void {
    if (this.#labels.has(selector.id)) return
    const set = this.#sets.intern([`fqdn:${selector.text}`])
    const [label] = this.#sets.get(set).labels
    invariant(label !== undefined, 'a selector has a label')
    this.#sets.retain(set)
    this.#labels.set(selector.id, label)
    this.#index.add(selector.pattern, selector.id)
    this.#epoch++
  }

  /** Takes the selector's label away from names; nothing when they don't carry it. */
  drop(selector: FqdnSelector): void {
    if (!this.#labels.delete(selector.id)) return
    this.#index.remove(selector.pattern, selector.id)
    this.#sets.release(this.#sets.intern([`fqdn:${selector.text}`]))
    this.#epoch++
  }

  /** The label set of the selectors that match the wire name at `offset`. */
  labelsOf(wire: Uint8Array, offset: number): number {
    this.#matched.clear()
    const count = this.#index.match(wire, offset, this.#matched)
    if (count === 0) return EMPTY_SET
    this.#scratch.length = 0
    for (let i = 0; i < count; i++) {
      const label = this.#labels.get(this.#matched.items[i]!)
      if (label !== undefined) this.#scratch.push(label)
    }
    return this.#sets.internLabels(this.#scratch)
  }
}
