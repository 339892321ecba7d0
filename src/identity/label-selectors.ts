// LabelSelectors finds the selectors (`toEndpoints`) that select known endpoints and external resources by their labels. Endpoints and
// resources have no `reserved:` label. Addresses of the world and of the node have one and are left out here, so that a negative condition
// (`NotIn`, `DoesNotExist`) never selects them. Only the selector cache uses this class.
//
// Cost: an identity is compared with the selectors that require one of its labels, and with the selectors that require no certain label.
// A new selector is compared with the identities that have its required label. If it requires none, it is compared with all identities
// of endpoints and resources.

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
  /** Selectors by one `key=value` that they require, without the source of the label. */
  readonly #byLabel = new Map<string, Set<Kept>>()
  /** The identities of known endpoints and resources. */
  readonly #known = new Map<Identity, LabelIndex>()
  readonly #identitiesByLabel = new Map<string, Set<Identity>>()

  add(kept: Kept): void {
    addTo(this.#byLabel, bucketOf(kept.selector), kept)
  }

  remove(kept: Kept): void {
    removeFrom(this.#byLabel, bucketOf(kept.selector), kept)
  }

  /** Registers an identity if its labels belong to a known endpoint or resource. */
  addIdentity(id: Identity, set: LabelSet): void {
    if (!isKnown(set)) return
    const labels = indexLabels(plainTexts(set))
    this.#known.set(id, labels)
    for (const bucket of bucketsOf(labels)) addTo(this.#identitiesByLabel, bucket, id)
  }

  /** Returns the selectors that select a label set. */
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

  /** Returns the registered identities that a selector selects. */
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

/** Returns true if the label set belongs to a known endpoint or resource. */
function isKnown({ labels }: LabelSet): boolean {
  for (const { kind, key } of labels) {
    if (kind === 'plain' && key.startsWith('reserved:')) return false
  }
  return true
}

function plainTexts({ labels }: LabelSet): readonly string[] {
  return labels.flatMap(({ kind, text }) => (kind === 'plain' ? [text] : []))
}
