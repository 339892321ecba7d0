// PolicyMatcher finds the policies that select an endpoint with given labels. `set` compares the new policies with the old ones by object
// identity. It forgets only the results for labels that an added or removed policy selects. PolicyControl uses it, and so do checks of
// proposed policies.
//
// `selecting` returns the policies in the order of `set`. Two results with equal keys have the same policies.
// Cost: `set` looks at each policy and each known list of labels. `selecting` is one probe for known labels. For new labels it looks at
// the policies that share a label with them.

import {
  addTo,
  ANY_LABEL,
  bucketOf,
  bucketOfLabel,
  bucketsOf,
  indexLabels,
  type LabelIndex,
  NAMESPACE_KEY,
  policySelects,
  removeFrom,
} from './labels.ts'
import type { Policy } from '../rule.ts'

/** The policies that select one endpoint. */
export interface Selecting {
  /** The numbers of the policies, joined. */
  readonly key: string
  readonly policies: readonly Policy[]
}

/** The policies that a new list adds and removes. */
export interface PolicyDifference {
  readonly added: readonly Policy[]
  readonly removed: readonly Policy[]
}

/** Endpoints that have the same labels. */
interface Group {
  readonly labels: LabelIndex
  readonly buckets: ReadonlySet<string>
  selecting: Selecting | undefined
}

/** How many lists of labels are remembered. When one more comes, PolicyMatcher first forgets all of them. */
const GROUPS_MAX = 32_768

export class PolicyMatcher {
  #policies: readonly Policy[] = []
  /** The position of each policy in `#policies`. */
  #places = new Map<Policy, number>()
  readonly #numbers = new WeakMap<Policy, number>()
  readonly #index = new PolicyIndex()
  readonly #groups = new Map<string, Group>()
  #nextNumber = 1

  /** Replaces the policies. Returns which policies were added and removed. */
  set(policies: readonly Policy[]): PolicyDifference {
    if (policies === this.#policies) return { added: [], removed: [] }
    const { added, removed } = this.#place(policies)
    if (added.length + removed.length === 0) return { added, removed }
    const changed = new PolicyIndex()
    for (const policy of removed) {
      this.#index.remove(policy)
      changed.add(policy)
    }
    for (const policy of added) {
      this.#index.add(policy)
      changed.add(policy)
    }
    for (const group of this.#groups.values()) {
      if (changed.hasSelecting(group)) group.selecting = undefined
    }
    return { added, removed }
  }

  /** Returns the policies that select an endpoint with these labels. */
  selecting(labels: readonly string[]): Selecting {
    const group = this.#groupOf(labels)
    group.selecting ??= this.#find(group)
    return group.selecting
  }

  /** Notes the position of each policy. Mostly a few policies were replaced or added at the end, and all others keep their positions. */
  #place(policies: readonly Policy[]): PolicyDifference {
    const before = this.#policies
    const places = this.#places
    this.#policies = policies
    const isLikeBefore = policies.length >= before.length && places.size === before.length
    if (!isLikeBefore) return this.#placeAll(policies)
    const [gone, come] = [new Set<Policy>(), new Map<Policy, number>()]
    policies.forEach((policy, place) => {
      const old = before[place]
      if (old === policy) return
      if (old !== undefined) gone.add(old)
      come.set(policy, place)
    })
    const added = [...come.keys()].filter((policy) => !places.has(policy))
    if (added.length < come.size) return this.#placeAll(policies)
    for (const policy of gone) places.delete(policy)
    for (const [policy, place] of come) places.set(policy, place)
    return { added, removed: [...gone] }
  }

  #placeAll(policies: readonly Policy[]): PolicyDifference {
    const before = this.#places
    const places = new Map(policies.map((policy, place) => [policy, place]))
    this.#places = places
    let last = -1
    for (const policy of places.keys()) {
      const place = before.get(policy) ?? last
      // The order of policies changed, so the results of all groups have the wrong order.
      if (place < last) this.#groups.clear()
      last = place
    }
    return {
      added: [...places.keys()].filter((policy) => !before.has(policy)),
      removed: [...before.keys()].filter((policy) => !places.has(policy)),
    }
  }

  #groupOf(labels: readonly string[]): Group {
    const text = labels.join('\n')
    const known = this.#groups.get(text)
    if (known !== undefined) return known
    const index = indexLabels(labels)
    const group = { labels: index, buckets: bucketsOf(index), selecting: undefined }
    if (this.#groups.size >= GROUPS_MAX) this.#groups.clear()
    this.#groups.set(text, group)
    return group
  }

  #find(group: Group): Selecting {
    const places = this.#places
    const policies = [...this.#index.selecting(group)].sort(
      (a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0),
    )
    return { key: policies.map((policy) => this.#numberOf(policy)).join(','), policies }
  }

  #numberOf(policy: Policy): number {
    const known = this.#numbers.get(policy)
    if (known !== undefined) return known
    const number = this.#nextNumber++
    this.#numbers.set(policy, number)
    return number
  }
}

/** Finds policies by one label that every endpoint must have that the policy selects. */
class PolicyIndex {
  readonly #byLabel = new Map<string, Set<Policy>>()

  add(policy: Policy): void {
    addTo(this.#byLabel, labelOf(policy), policy)
  }

  remove(policy: Policy): void {
    removeFrom(this.#byLabel, labelOf(policy), policy)
  }

  hasSelecting(group: Group): boolean {
    for (const _ of this.selecting(group)) return true
    return false
  }

  *selecting({ labels, buckets }: Group): Iterable<Policy> {
    yield* this.#selectingIn(ANY_LABEL, labels)
    for (const bucket of buckets) yield* this.#selectingIn(bucket, labels)
  }

  *#selectingIn(bucket: string, labels: LabelIndex): Iterable<Policy> {
    for (const policy of this.#byLabel.get(bucket) ?? []) {
      if (policySelects(policy, labels)) yield policy
    }
  }
}

/** Returns the bucket of a policy: that of its selector. If the selector requires no label, that of the policy's namespace. */
function labelOf({ namespace, selector }: Policy): string {
  const own = bucketOf(selector)
  return own === ANY_LABEL && namespace !== undefined
    ? bucketOfLabel(NAMESPACE_KEY, namespace)
    : own
}
