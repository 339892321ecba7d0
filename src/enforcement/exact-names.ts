// Selectors of single names (`matchName`) by the last two labels of the name, so that who has a pattern need not compare
// it with all of them. Written and read by the pre-allocation.

import type { FqdnSelector } from '../identity/selector-cache.ts'
import { addTo, removeFrom } from '../policy/match/label-buckets.ts'
import type { Pattern } from '../policy/match/pattern.ts'

type Selectors = ReadonlySet<FqdnSelector>

export class ExactNames {
  readonly #byEnd = new Map<string, Set<FqdnSelector>>()

  add(selector: FqdnSelector): void {
    addTo(this.#byEnd, endOf(selector.pattern.labels), selector)
  }

  remove(selector: FqdnSelector): void {
    removeFrom(this.#byEnd, endOf(selector.pattern.labels), selector)
  }

  /** Sets with every selector whose name a pattern may match. */
  under({ labels }: Pattern): Iterable<Selectors> {
    const last = labels.slice(-2)
    const isLiteral = last.length === 2 && !last.some((label) => label.includes('*'))
    if (!isLiteral) return this.#byEnd.values()
    const under = this.#byEnd.get(endOf(labels))
    return under === undefined ? [] : [under]
  }
}

function endOf(labels: readonly string[]): string {
  return labels.slice(-2).join('.')
}
