// The labels of one prefix's own facts: the union over its owners. Where two owners claim the same key,
// the earlier kind wins (node, endpoint, resource, name, policy), then the smaller owner text, and the
// conflict is counted. Facts of names and policies cannot conflict: a fqdn or cidr label is its own key.

import type { Label, LabelSets } from '../core/labels.ts'
import { EMPTY_SET } from '../core/labels.ts'
import { OWNER_NAME, OWNER_POLICY, type Facts } from './facts.ts'

export interface Merged {
  readonly set: number
  readonly conflicts: number
}

export function mergeFacts(
  facts: Facts,
  first: number,
  sets: LabelSets,
  ownerText: (kind: number, owner: number) => string,
): Merged {
  let union = EMPTY_SET
  let last = EMPTY_SET
  for (let fact = first; fact !== 0; fact = facts.next[fact]!) {
    const kind = facts.kind[fact]!
    if (kind !== OWNER_NAME && kind !== OWNER_POLICY) {
      // Most prefixes of configuration have one owner.
      return isAlone(facts, first, sets)
        ? { set: facts.set[first]!, conflicts: 0 }
        : mergeByKey(facts, first, sets, ownerText)
    }
    const set = facts.set[fact]!
    if (set !== last) union = sets.union(union, set)
    last = set
  }
  return { set: union, conflicts: 0 }
}

/** Whether the fact is the only one and no two of its labels have the same key: then its set is what it says. */
function isAlone(facts: Facts, fact: number, sets: LabelSets): boolean {
  if (facts.next[fact] !== 0) return false
  const { labels } = sets.get(facts.set[fact]!)
  for (let i = 1; i < labels.length; i++) {
    for (let j = 0; j < i; j++) if (labels[i]?.key === labels[j]?.key) return false
  }
  return true
}

function mergeByKey(
  facts: Facts,
  first: number,
  sets: LabelSets,
  ownerText: (kind: number, owner: number) => string,
): Merged {
  const ordered: { readonly kind: number; readonly text: string; readonly set: number }[] = []
  for (let fact = first; fact !== 0; fact = facts.next[fact]!) {
    const kind = facts.kind[fact]!
    ordered.push({ kind, text: ownerText(kind, facts.owner[fact]!), set: facts.set[fact]! })
  }
  ordered.sort((a, b) => a.kind - b.kind || (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
  const byKey = new Map<string, Label>()
  let conflicts = 0
  for (const { set } of ordered) {
    for (const label of sets.get(set).labels) {
      const winner = byKey.get(label.key)
      if (winner === undefined) byKey.set(label.key, label)
      else if (winner !== label) conflicts++
    }
  }
  return { set: sets.internLabels([...byKey.values()]), conflicts }
}
