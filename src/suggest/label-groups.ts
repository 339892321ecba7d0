// LabelGroups groups flows by the labels of their endpoints, or collects the flows of the endpoints that one selector selects. Labels that
// differ in every copy of a workload (`endpoints.identity-labels`) are ignored, so that all copies make one group.

import type { IdentityLabels } from '../policy/identity-labels.ts'
import { indexLabels, selectorMatches } from '../policy/match/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'
import type { FlowLine } from './flow-line.ts'
import { namespaceOf, selectorOf } from './format.ts'
import { compare } from './collapse.ts'
import { Needs } from './needs.ts'

/** Endpoints with the same namespace and labels, and what they need. */
export interface Group {
  readonly namespace: string
  /** `matchLabels` that select the endpoints of the group. Empty for endpoints without labels. */
  readonly selector: ReadonlyMap<string, string>
  readonly needs: Needs
}

export class LabelGroups {
  /** Number of flows that were not recorded. */
  lost = 0
  /** Number of lines about endpoints that `only` does not select. */
  others = 0
  readonly #groups = new Map<string, Group>()
  readonly #keyOf = new Map<string, string>()
  readonly #identityLabels: IdentityLabels
  readonly #only: LabelSelector | undefined

  /** With `only`, the endpoints that it selects make one group, or one per namespace. If undefined, every set of labels makes a group. */
  constructor(identityLabels: IdentityLabels, only: LabelSelector | undefined) {
    this.#identityLabels = identityLabels
    this.#only = only
  }

  /** Returns all groups, sorted by namespace and labels. */
  get groups(): readonly Group[] {
    return [...this.#groups].sort(([a], [b]) => compare(a, b)).map(([, group]) => group)
  }

  add(line: Exclude<FlowLine, { readonly kind: 'bad' }>): void {
    switch (line.kind) {
      case 'denied':
        this.#groupOf(line.labels)?.needs.addDenied(line)
        break
      case 'lost':
        this.lost += line.count
        break
      case 'other':
        break
      case 'asked':
        this.#groupOf(line.labels)?.needs.addAsked(line.name, line.sighting)
        break
      case 'reached':
        this.#groupOf(line.labels)?.needs.addReached(line.connection, line.sighting)
    }
  }

  #groupOf(labels: readonly string[]): Group | undefined {
    const written = labels.join('\n')
    const known = this.#keyOf.get(written)
    const key = known ?? this.#makeGroup(labels)
    if (known === undefined) this.#keyOf.set(written, key)
    const group = this.#groups.get(key)
    if (group === undefined) this.others++
    return group
  }

  /** Returns the key of the group. The key is empty for an endpoint that `only` does not select. */
  #makeGroup(labels: readonly string[]): string {
    const only = this.#only
    if (only !== undefined && !selectorMatches(only, indexLabels(labels))) return ''
    const own = this.#identityLabels.of(labels)
    const namespace = namespaceOf(own)
    const selector = only?.matchLabels ?? selectorOf(own)
    const key = JSON.stringify([namespace, ...selector])
    if (!this.#groups.has(key))
      this.#groups.set(key, { namespace, selector, needs: new Needs(own) })
    return key
  }
}
