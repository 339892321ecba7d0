// NamePatterns keeps every pattern in force once, in one index. Two components use the patterns: the permission to ask names
// (enforcement/dns-verdicts.ts) and the labels of names (names/labels/selector-labels.ts). One match of a name serves both. A pattern has a
// number while it is held.

import { invariant } from '../../core/invariant.ts'
import { IdList } from '../../core/tables/id-list.ts'
import type { Pattern } from './pattern.ts'
import { PatternIndex } from './pattern-index.ts'

interface Held {
  readonly number: number
  holders: number
}

export class NamePatterns {
  readonly #index = new PatternIndex()
  readonly #byText = new Map<string, Held>()
  readonly #freed: number[] = []
  /** The numbers of the patterns that match the name of the last `match`. */
  readonly matched = new IdList()

  /** Holds a pattern, and counts the holds. Returns its number. */
  hold(pattern: Pattern): number {
    const known = this.#byText.get(pattern.text)
    if (known !== undefined) {
      known.holders++
      return known.number
    }
    const number = this.#freed.pop() ?? this.#byText.size
    this.#byText.set(pattern.text, { number, holders: 1 })
    this.#index.add(pattern, number)
    return number
  }

  /** Takes back one `hold`. */
  release(pattern: Pattern): void {
    const held = this.#byText.get(pattern.text)
    invariant(held !== undefined, `the pattern ${pattern.text} is held`)
    if (--held.holders > 0) return
    this.#byText.delete(pattern.text)
    this.#index.remove(pattern, held.number)
    this.#freed.push(held.number)
  }

  /** Fills `matched` for the lower-case name at `offset` (wire format). Returns how many patterns match. */
  match(wire: Uint8Array, offset: number): number {
    this.matched.clear()
    return this.#index.match(wire, offset, this.matched)
  }
}
