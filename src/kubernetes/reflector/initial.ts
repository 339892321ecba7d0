// Collects the objects of a list that is still incomplete. Nothing of it reaches the owner before the list is complete.

import { readObject, type KubernetesObject, type ObjectKind } from './objects.ts'

/** No list may have more objects, so that a faulty server cannot fill the memory. Kubernetes tests itself with 150,000 pods. */
export const OBJECTS_MAX = 200_000

export class Initial {
  /** By UID. */
  readonly #objects = new Map<string, KubernetesObject>()
  readonly #kind: ObjectKind
  readonly #onMalformed: (fault: string) => void

  constructor(kind: ObjectKind, onMalformed: (fault: string) => void) {
    this.#kind = kind
    this.#onMalformed = onMalformed
  }

  /** Takes the items of a page. Returns false if there are too many. */
  take(items: readonly unknown[]): boolean {
    return items.every((each) => {
      const read = readObject(each, this.#kind)
      if (read.kind === 'object') return this.change('change', read.object)
      this.#onMalformed(read.fault)
      return true
    })
  }

  /** Takes an event. An object can come again with a newer version. Returns false if there are too many. */
  change(kind: 'change' | 'removal', object: KubernetesObject): boolean {
    if (kind === 'removal') this.#objects.delete(object.metadata.uid)
    else this.#objects.set(object.metadata.uid, object)
    return this.#objects.size <= OBJECTS_MAX
  }

  all(): readonly KubernetesObject[] {
    return [...this.#objects.values()]
  }
}
