// Flows sorted by whom they are about: endpoints with the same labels, or all that a selector names. Labels that are different in
// every copy of a workload (`endpoints.identity-labels`) make no group of their own.

import type { IdentityLabels } from '../policy/identity-labels.ts'
import { indexLabels, selectorMatches } from '../policy/match/labels.ts'
import type { LabelSelector } from '../policy/rule.ts'
import type { FlowLine } from './flow-line.ts'
import { namespaceOf, selectorOf } from './format-policy.ts'
import { compare } from './collapse.ts'
import { Needs } from './needs.ts'

export interface Group {
  readonly namespace: string
  /** `matchLabels` of the endpoints; empty: they have no labels. */
  readonly selector: ReadonlyMap<string, string>
  readonly needs: Needs
}

export class LabelGroups {
  /** Flows that a policy denied, and flows that are in no line. */
  denied = 0
  lost = 0
  /** Flows of endpoints that `only` does not select. */
  others = 0
  readonly #groups = new Map<string, Group>()
  readonly #keyOf = new Map<string, string>()
  readonly #identityLabels: IdentityLabels
  readonly #only: LabelSelector | undefined

  /** `only`: just these endpoints, as one group. */
  constructor(identityLabels: IdentityLabels, only: LabelSelector | undefined) {
    this.#identityLabels = identityLabels
    this.#only = only
  }

  /** Sorted by namespace and labels. */
  get groups(): readonly Group[] {
    return [...this.#groups].sort(([a], [b]) => compare(a, b)).map(([, group]) => group)
  }

  add(line: Exclude<FlowLine, { readonly kind: 'bad' }>): void {
    switch (line.kind) {
      case 'denied':
        this.denied += line.count
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

  /** Its key; empty where the endpoint is not asked about. */
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
