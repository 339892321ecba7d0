// Holds the labels of the namespaces, which become labels of their pods.

import { objectName } from '../../core/object-names.ts'
import type { KeptObjects } from './kept-objects.ts'
import type { KubernetesObject, Texts } from '../reflector/objects.ts'

export class Namespaces {
  readonly #labels = new Map<string, Texts>()
  /** False if the collection of namespaces is not read. Then every namespace is known, and has no labels. */
  readonly #areRead: boolean
  readonly #kept: KeptObjects | undefined

  constructor(areRead: boolean, kept: KeptObjects | undefined) {
    this.#areRead = areRead
    this.#kept = kept
  }

  get count(): number {
    return this.#labels.size
  }

  /** The names of the objects. */
  names(): readonly string[] {
    return [...this.#labels.keys()].map(namespaceObject)
  }

  /** The labels of a namespace. Undefined while the namespace is not known. */
  labelsOf(name: string): Texts | undefined {
    return this.#areRead ? this.#labels.get(name) : {}
  }

  /** Returns true if the labels are new. */
  set({ metadata }: KubernetesObject): boolean {
    const { name, uid, labels = {} } = metadata
    const before = this.#labels.get(name)
    this.#labels.set(name, labels)
    this.#kept?.keep(namespaceObject(name), JSON.stringify({ metadata: { name, uid, labels } }))
    return before === undefined || !sameLabels(before, labels)
  }

  remove(name: string): void {
    this.#labels.delete(name)
    this.#kept?.keep(namespaceObject(name), undefined)
  }
}

export function namespaceObject(name: string): string {
  return objectName('Namespace', undefined, name)
}

function sameLabels(a: Texts, b: Texts): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}
