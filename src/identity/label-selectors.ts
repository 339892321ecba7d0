// Selectors by the labels of known endpoints and external resources (`toEndpoints`). These carry no `reserved:` label. Addresses of
// the world and of the node do, so a negative condition (`NotIn`, `DoesNotExist`) never selects them. Written by the selector cache
// alone.
//
// Cost: an identity is compared with the selectors that want one of its labels and with those that want no label in particular. A
// new selector is compared with the identities that have its label, else with all known ones.

import type { Identity } from '../core/ids.ts'
import type { LabelSet } from '../core/labels.ts'
import {
  addTo,
  ANY_LABEL,
  bucketOf,
  bucketsOf,
  indexLabels,
  type LabelIndex,
  removeFrom,
  selectorMatches,
} from '../policy/match/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'

interface Holder {
  readonly selector: LabelSelector
}

export class LabelSelectors<Kept extends Holder> {
  /** Selectors by a `key=value` that they require, from any source. */
  readonly #byLabel = new Map<string, Set<Kept>>()
  readonly #known = new Map<Identity, LabelIndex>()
  readonly #identitiesByLabel = new Map<string, Set<Identity>>()

  add(kept: Kept): void {
    addTo(this.#byLabel, bucketOf(kept.selector), kept)
  }

  remove(kept: Kept): void {
    removeFrom(this.#byLabel, bucketOf(kept.selector), kept)
  }

  /** Registers an identity if its labels are those of a known endpoint or resource. */
  addIdentity(id: Identity, set: LabelSet): void {
    if (!isKnown(set)) return
    const labels = indexLabels(plainTexts(set))
    this.#known.set(id, labels)
    for (const bucket of bucketsOf(labels)) addTo(this.#identitiesByLabel, bucket, id)
  }

  /** The selectors that select a label set. */
  selectorsFor(set: LabelSet): readonly Kept[] {
    if (this.#byLabel.size === 0 || !isKnown(set)) return []
    const labels = indexLabels(plainTexts(set))
    return [ANY_LABEL, ...bucketsOf(labels)].flatMap((bucket) =>
      [...(this.#byLabel.get(bucket) ?? [])].filter(({ selector }) =>
        selectorMatches(selector, labels),
      ),
    )
  }

  removeIdentity(id: Identity): void {
    const labels = this.#known.get(id)
    if (labels === undefined) return
    this.#known.delete(id)
    for (const bucket of bucketsOf(labels)) removeFrom(this.#identitiesByLabel, bucket, id)
  }

  /** The present identities that a selector selects. */
  identitiesOf({ selector }: Holder): ReadonlySet<Identity> {
    const bucket = bucketOf(selector)
    const candidates =
      bucket === ANY_LABEL ? this.#known.keys() : (this.#identitiesByLabel.get(bucket) ?? [])
    const selected = new Set<Identity>()
    for (const id of candidates) {
      const labels = this.#known.get(id)
      if (labels !== undefined && selectorMatches(selector, labels)) selected.add(id)
    }
    return selected
  }
}

/** Whether labels are those of a known endpoint or resource. */
function isKnown({ labels }: LabelSet): boolean {
  for (const { kind, key } of labels) {
    if (kind === 'plain' && key.startsWith('reserved:')) return false
  }
  return true
}

function plainTexts({ labels }: LabelSet): readonly string[] {
  return labels.flatMap(({ kind, text }) => (kind === 'plain' ? [text] : []))
}
