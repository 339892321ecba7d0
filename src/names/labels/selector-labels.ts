// From the FQDN selectors in force to the labels of a name. Selectors are added and removed one by one. Each change begins a new
// epoch, by which names know that their labels are out of date.

import { invariant } from '../../core/invariant.ts'
import { EMPTY_SET, type Label, type LabelSets } from '../../core/labels.ts'
import type { FqdnSelector } from '../../identity/selector-cache.ts'
import { IdList } from '../../core/tables/id-list.ts'
import { PatternIndex } from '../../policy/match/pattern-index.ts'
import type { NameLabeller } from './fact-labels.ts'

/** The label that a selector gives to names, and the set of that label alone, retained while the selector is in force. */
interface Given {
  readonly label: Label
  readonly set: number
}

export class SelectorLabels implements NameLabeller {
  readonly #sets: LabelSets
  readonly #index = new PatternIndex()
  readonly #given = new Map<number, Given>()
  readonly #matched = new IdList()
  readonly #scratch: Label[] = []
  /** Ids of selectors that label guarded addresses too. */
  readonly #open = new Set<number>()
  /** Labels that a name which was asked has had. */
  readonly #seen = new Set<string>()
  /** The set seen last, whose labels are all in `#seen`. Names learned together mostly have the same set. */
  #lastSeen = EMPTY_SET
  #wasOpen = false
  #epoch = 1

  constructor(options: { readonly labelSets: LabelSets }) {
    this.#sets = options.labelSets
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Label sets that are retained here; for checks. */
  *heldSets(): Iterable<number> {
    for (const { set } of this.#given.values()) yield set
  }

  /** Whether names that the selector matches carry its label. */
  has({ id }: FqdnSelector): boolean {
    return this.#given.has(id)
  }

  /** The set of the selector's label alone; undefined when names do not carry it. */
  setOf({ id }: FqdnSelector): number | undefined {
    return this.#given.get(id)?.set
  }

  /** Gives the selector's label to the names that it matches, if they do not have it. */
  ensure(selector: FqdnSelector): void {
    if (this.#given.has(selector.id)) return
    const set = this.#sets.intern([selector.label])
    const [label] = this.#sets.get(set).labels
    invariant(label !== undefined, 'a selector has a label')
    this.#sets.retain(set)
    this.#given.set(selector.id, { label, set })
    this.#index.add(selector.pattern, selector.id)
    this.#epoch++
  }

  /** Takes the selector's label away from names, if they have it. */
  drop(selector: FqdnSelector): void {
    const given = this.#given.get(selector.id)
    if (given === undefined) return
    this.#given.delete(selector.id)
    this.#open.delete(selector.id)
    this.#index.remove(selector.pattern, selector.id)
    this.#sets.release(given.set)
    this.#seen.delete(given.label.text)
    this.#lastSeen = EMPTY_SET
    this.#epoch++
  }

  /** Sets whether the selector labels guarded addresses that documents can open. */
  setOpen(selector: FqdnSelector, open: boolean): void {
    if (open === this.#open.has(selector.id) || !this.#given.has(selector.id)) return
    if (open) this.#open.add(selector.id)
    else this.#open.delete(selector.id)
    this.#wasOpen ||= open
    this.#epoch++
  }

  isOpen({ id }: FqdnSelector): boolean {
    return this.#open.has(id)
  }

  /** Whether any selector ever was open. */
  get wasOpen(): boolean {
    return this.#wasOpen
  }

  /** Notes the labels of a name that an answer taught. */
  noteSeen(set: number): void {
    if (set === this.#lastSeen) return
    this.#lastSeen = set
    for (const { text } of this.#sets.get(set).labels) this.#seen.add(text)
  }

  /** Whether the selector has matched a name since it came into force, even if the name is forgotten by now. */
  hasSeen({ text }: Pick<FqdnSelector, 'text'>): boolean {
    return this.#seen.has(`fqdn:${text}`)
  }

  /** The label set of those selectors that match the wire name and are open to guarded addresses. */
  guardedLabelsOf(wire: Uint8Array, offset: number): number {
    if (this.#open.size === 0) return EMPTY_SET
    this.#matched.clear()
    const count = this.#index.match(wire, offset, this.#matched)
    this.#scratch.length = 0
    for (let i = 0; i < count; i++) {
      const id = this.#matched.items[i]!
      const given = this.#open.has(id) ? this.#given.get(id) : undefined
      if (given !== undefined) this.#scratch.push(given.label)
    }
    return this.#scratch.length === 0 ? EMPTY_SET : this.#sets.internLabels(this.#scratch)
  }

  /** The label set of the selectors that match the wire name at `offset`. */
  labelsOf(wire: Uint8Array, offset: number): number {
    this.#matched.clear()
    const count = this.#index.match(wire, offset, this.#matched)
    if (count === 0) return EMPTY_SET
    // Most names have one selector, and its set is there.
    if (count === 1) return this.#given.get(this.#matched.items[0]!)?.set ?? EMPTY_SET
    this.#scratch.length = 0
    for (let i = 0; i < count; i++) {
      const given = this.#given.get(this.#matched.items[i]!)
      if (given !== undefined) this.#scratch.push(given.label)
    }
    return this.#sets.internLabels(this.#scratch)
  }
}
