// Buckets for what is found by label: one label that a selector can't do without, whatever its source, and all
// labels that something has. Who looks for selectors that match reads the buckets of the labels and `ANY_LABEL`; who
// looks for what a selector matches, the selector's one bucket. Pure.

import { splitKey, type LabelIndex } from './labels.ts'
import type { LabelSelector } from '../rule.ts'

/** Bucket of selectors that want no one label in particular. */
export const ANY_LABEL = ''

export function bucketOf({ matchLabels }: LabelSelector): string {
  // The last one: the namespace, which many share, is put in front of what the author wrote.
  const last = [...matchLabels].at(-1)
  return last === undefined ? ANY_LABEL : bucketOfLabel(splitKey(last[0], '').key, last[1])
}

export function bucketOfLabel(key: string, value: string): string {
  return `${key}=${value}`
}

/** One bucket for each label, each once. */
export function bucketsOf({ byKey }: LabelIndex): ReadonlySet<string> {
  const buckets = new Set<string>()
  for (const [key, values] of byKey)
    for (const value of values) buckets.add(bucketOfLabel(key, value))
  return buckets
}

export function addTo<Item>(map: Map<string, Set<Item>>, key: string, item: Item): void {
  const items = map.get(key)
  if (items === undefined) map.set(key, new Set([item]))
  else items.add(item)
}

export function removeFrom<Item>(map: Map<string, Set<Item>>, key: string, item: Item): void {
  const items = map.get(key)
  items?.delete(item)
  if (items?.size === 0) map.delete(key)
}
