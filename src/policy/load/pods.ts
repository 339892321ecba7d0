// This file reads the selectors with which policies of Kubernetes select pods: by labels of their namespace, and by their own labels. Keys
// about namespaces match only labels of the source `k8s:`, because a namespace is a boundary.

import type { Reader } from '../../documents/source-document.ts'
import type { LabelSelector } from '../rule.ts'
import { NAMESPACE_LABELS, readSelector } from './selector.ts'

/** Reads a selector of namespaces. Returns a selector of the endpoints in these namespaces; undefined after a fault. */
export function readNamespaces(reader: Reader): LabelSelector | undefined {
  return readSelector(reader, { mapKey: (key) => `k8s:${NAMESPACE_LABELS}${key}` })
}

/** Returns a selector that requires what both selectors require, also when both want a value for one key. */
export function both(a: LabelSelector, b: LabelSelector): LabelSelector {
  const matchLabels = new Map([...a.matchLabels, ...b.matchLabels])
  const expressions = [...(a.matchExpressions ?? []), ...(b.matchExpressions ?? [])]
  for (const [key, value] of a.matchLabels) {
    if (matchLabels.get(key) !== value) expressions.push({ key, operator: 'In', values: [value] })
  }
  return expressions.length === 0 ? { matchLabels } : { matchLabels, matchExpressions: expressions }
}
