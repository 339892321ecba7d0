// What a reflector tells the owner of a collection.

import type { KubernetesObject } from './objects.ts'

/**
 * `listing`: the first list, or a list that is due. `watching`: changes arrive. `away`: the server does not answer as it should.
 * `absent`: the cluster does not have this kind. `forbidden`: a right is missing. In each state the owner keeps what it knows.
 */
export type CollectionState = 'listing' | 'watching' | 'away' | 'absent' | 'forbidden'

export interface CollectionEvents {
  /** The whole collection: every object that is not in `objects` is gone. */
  onList(objects: readonly KubernetesObject[]): void
  /** An object is new or changed. */
  onChange(object: KubernetesObject): void
  onRemove(object: KubernetesObject): void
  /** `reason` is a sentence without a full stop. It is empty while everything is well. */
  onState(state: CollectionState, reason: string): void
  /** What is known is current: an event, a bookmark, or a list of the newest state. */
  onCurrent(): void
  /** An object or event could not be read, and was left out. In a list, the call comes before `onList`. */
  onMalformed(fault: string): void
}
