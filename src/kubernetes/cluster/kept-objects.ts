// Keeps the objects of a cluster in force over restarts, as JSON texts by their names (core/object-names.ts).

import { isObjectName, objectName } from '../../core/object-names.ts'
import { isMapping } from '../../documents/source-document.ts'
import type { TextKeeper } from '../../sources/files/last-good-texts.ts'
import { fieldAt } from './fields.ts'
import { readObject, type KubernetesObject } from '../reflector/objects.ts'

/** Texts under these names say which removals are held. They are no objects either. */
const HELD = objectName('Held', undefined, '')
/** A text under this name says that every collection was listed. It is no object, so `read` leaves it out. */
const COMPLETE = objectName('Complete', undefined, 'all')

export class KeptObjects {
  readonly #keeper: TextKeeper
  readonly #texts: Map<string, string>

  constructor(keeper: TextKeeper) {
    this.#keeper = keeper
    this.#texts = new Map([...keeper.saved].filter(([name]) => isObjectName(name)))
  }

  /** The present texts by name, for an image of the state. */
  get texts(): ReadonlyMap<string, string> {
    return this.#texts
  }

  /** Returns the kept objects. Leaves out texts that are no objects. */
  read(): readonly (readonly [name: string, object: KubernetesObject])[] {
    return [...this.#texts].flatMap(([name, text]) => {
      const object = parseObject(text)
      return object === undefined ? [] : [[name, object] as const]
    })
  }

  /** True if the kept objects were once all objects of every collection. */
  get isComplete(): boolean {
    return this.#texts.has(COMPLETE)
  }

  /** Notes that the kept objects are all objects of every collection. */
  markComplete(): void {
    this.keep(COMPLETE, '{}')
  }

  /** The objects whose removal was held by the daemon before. */
  get held(): readonly string[] {
    const marks = [...this.#texts.keys()].filter((name) => name.startsWith(HELD))
    return marks.map((name) => name.slice(HELD.length))
  }

  /** Stores whether the removal of an object is held. */
  markHeld(name: string, isHeld: boolean): void {
    this.keep(HELD + name, isHeld ? '{}' : undefined)
  }

  /** Stores the JSON text of an object. `text` undefined: the object is gone. */
  keep(name: string, text: string | undefined): void {
    if (this.#texts.get(name) === text) return
    if (text === undefined) this.#texts.delete(name)
    else this.#texts.set(name, text)
    this.#keeper.keep(name, text)
  }
}

/** Most texts have no resource version, because it changes when nothing of the text does. */
const UNVERSIONED = { resourceVersion: '0' }

function parseObject(text: string): KubernetesObject | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const metadata = fieldAt(value, 'metadata')
  if (!isMapping(value) || !isMapping(metadata)) return undefined
  const kind = { apiVersion: '', kind: '' }
  const read = readObject({ ...value, metadata: { ...UNVERSIONED, ...metadata } }, kind)
  return read.kind === 'object' ? read.object : undefined
}
