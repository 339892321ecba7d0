// SelectorLabels finds the labels of a name from the FQDN selectors in force. Selectors are added and removed one by one. Each change
// begins a new epoch. Names and queries in flight note the epoch of their labels, which shows whether the labels are out of date.

import { invariant } from '../../core/invariant.ts'
import { EMPTY_SET, type Label, type LabelSets } from '../../core/labels.ts'
import type { FqdnSelector } from '../../identity/selector-cache.ts'
import type { NamePatterns } from '../../policy/match/name-patterns.ts'
import type { NameKey } from '../tables/name-table.ts'
import type { NameLabeller } from './fact-labels.ts'

/** A selector in force. */
interface Given {
  /** The label that the selector gives to the names that it matches. */
  readonly label: Label
  /** The set that has only this label. It is retained while the selector is in force. */
  readonly set: number
  /** Number of the selector's pattern in `NamePatterns`. */
  readonly pattern: number
}

/** Result of `matchedSet`: more than one selector matched, so the set of their labels has to be looked up. */
export const MANY_LABELS = -1

export class SelectorLabels implements NameLabeller {
  readonly #sets: LabelSets
  readonly #patterns: NamePatterns
  readonly #given = new Map<number, Given>()
  /** The selectors in force, by the number of their pattern. */
  readonly #byPattern: (Given | undefined)[] = []
  readonly #scratch: Label[] = []
  /** The selectors that also label guarded addresses. */
  readonly #open = new Set<Given>()
  /** Labels that some learned name has had. */
  readonly #seen = new Set<string>()
  /** The set that `noteSeen` got last. All its labels are in `#seen`. Names learned together mostly have the same set. */
  #lastSeen = EMPTY_SET
  #wasOpen = false
  #epoch = 1

  constructor(options: { readonly labelSets: LabelSets; readonly patterns: NamePatterns }) {
    this.#sets = options.labelSets
    this.#patterns = options.patterns
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Returns the label sets that this object retains. Checks of the tables use it. */
  *heldSets(): Iterable<number> {
    for (const { set } of this.#given.values()) yield set
  }

  /** Returns true if names that the selector matches get its label. */
  has({ id }: FqdnSelector): boolean {
    return this.#given.has(id)
  }

  /** Returns the set that has only the selector's label, or undefined if names do not get the label. */
  setOf({ id }: FqdnSelector): number | undefined {
    return this.#given.get(id)?.set
  }

  /** From now on, gives the selector's label to the names that the selector matches. */
  ensure(selector: FqdnSelector): void {
    if (this.#given.has(selector.id)) return
    const set = this.#sets.intern([selector.label])
    const [label] = this.#sets.get(set).labels
    invariant(label !== undefined, 'a selector has a label')
    this.#sets.retain(set)
    const pattern = this.#patterns.hold(selector.pattern)
    const given = { label, set, pattern }
    this.#given.set(selector.id, given)
    this.#byPattern[pattern] = given
    this.#epoch++
  }

  /** Ends the effect of `ensure`. */
  drop(selector: FqdnSelector): void {
    const given = this.#given.get(selector.id)
    if (given === undefined) return
    this.#given.delete(selector.id)
    this.#open.delete(given)
    this.#byPattern[given.pattern] = undefined
    this.#patterns.release(selector.pattern)
    this.#sets.release(given.set)
    this.#seen.delete(given.label.text)
    this.#lastSeen = EMPTY_SET
    this.#epoch++
  }

  /** Sets whether the selector also labels guarded addresses of the level GUARDED_UNLESS_SAID. */
  setOpen(selector: FqdnSelector, open: boolean): void {
    const given = this.#given.get(selector.id)
    if (given === undefined || open === this.#open.has(given)) return
    if (open) this.#open.add(given)
    else this.#open.delete(given)
    this.#wasOpen ||= open
    this.#epoch++
  }

  isOpen({ id }: FqdnSelector): boolean {
    const given = this.#given.get(id)
    return given !== undefined && this.#open.has(given)
  }

  /** True if any selector has ever labelled guarded addresses. */
  get wasOpen(): boolean {
    return this.#wasOpen
  }

  /** Notes the labels of a learned name. */
  noteSeen(set: number): void {
    if (set === this.#lastSeen) return
    this.#lastSeen = set
    for (const { text } of this.#sets.get(set).labels) this.#seen.add(text)
  }

  /** Returns true if the selector has matched a learned name since it came into force. The name may have been forgotten since. */
  hasSeen({ text }: Pick<FqdnSelector, 'text'>): boolean {
    return this.#seen.has(`fqdn:${text}`)
  }

  /** Returns the label set of the selectors that match the name in wire form at `offset` and also label guarded addresses. */
  guardedLabelsOf(wire: Uint8Array, offset: number): number {
    if (this.#open.size === 0) return EMPTY_SET
    this.#patterns.match(wire, offset)
    return this.#setOfMatched((given) => this.#open.has(given))
  }

  /** Returns the label set of the selectors that match the name in wire form at `offset`. */
  labelsOf(wire: Uint8Array, offset: number): number {
    this.#patterns.match(wire, offset)
    const set = this.matchedSet()
    return set === MANY_LABELS ? this.#setOfMatched(() => true) : set
  }

  /**
   * Returns the label set of a key's name. If the selectors have not changed since the question, the set in the key is used without a
   * match. It is still valid, because each selector retains the set of its label.
   */
  labelsOfKey(key: NameKey): number {
    return key.labelEpoch === this.#epoch ? key.labels : this.labelsOf(key.wire, 0)
  }

  /** Returns the label set of the name that NamePatterns matched last. Returns MANY_LABELS if more than one selector matched the name. */
  matchedSet(): number {
    const { items, count } = this.#patterns.matched
    let set = EMPTY_SET
    for (let i = 0; i < count; i++) {
      const given = this.#byPattern[items[i]!]
      if (given === undefined) continue
      if (set !== EMPTY_SET) return MANY_LABELS
      set = given.set
    }
    return set
  }

  #setOfMatched(counts: (given: Given) => boolean): number {
    const { items, count } = this.#patterns.matched
    this.#scratch.length = 0
    for (let i = 0; i < count; i++) {
      const given = this.#byPattern[items[i]!]
      if (given !== undefined && counts(given)) this.#scratch.push(given.label)
    }
    return this.#sets.internLabels(this.#scratch)
  }
}
