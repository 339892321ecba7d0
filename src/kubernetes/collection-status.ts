// The state of a collection, for views and warnings.

import type { CollectionState } from './reflector/collection-events.ts'

/** A collection as views show it. `held`: many policies were removed at once, and stay in force for a while. */
export interface CollectionStatus {
  readonly kind: string
  readonly state: CollectionState | 'held'
  readonly reason: string
  readonly objects: number
  readonly faulty: number
  readonly held: number
  /** Seconds since the objects were known to be current. -1: never. */
  readonly age: number
}

/** Which state of several targets is that of their collection: the worst. */
export const BADNESS: Readonly<Record<CollectionState, number>> = {
  watching: 0,
  listing: 1,
  absent: 2,
  away: 3,
  forbidden: 4,
}

/** Returns a sentence if the collection is not current, or if removals are held. */
export function warningsOf({
  kind,
  state,
  reason,
  age,
  held,
}: CollectionStatus): readonly string[] {
  const known = age < 0 ? 'nothing of it is known' : `known as of ${age} s ago`
  switch (state) {
    case 'watching':
    case 'listing':
      return []
    case 'held': {
      const how = '`namegate kubernetes accept` removes them now'
      return [
        `the cluster lost ${held} objects of ${kind} at once, which stay in force: ${reason}; ${how}`,
      ]
    }
    case 'absent':
      return []
    case 'away':
    case 'forbidden':
      return [`${kind} of the cluster: ${reason}; ${known}`]
  }
}
