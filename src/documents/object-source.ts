// `objectDocument` makes a document of plain values of a program, so that the readers of text documents can read it. It copies mappings and
// lists once, so that later changes and getters have no effect. Values that no text can express (functions, dates, class instances,
// circles) are faults. Positions have line 0, and a fault names the path instead. Cost: one pass over the values.

import type { Fault, Position } from '../core/errors.ts'
import { formatPath, isMapping, type SourceDocument, type SourcePath } from './source-document.ts'

/** How deep lists and mappings can be nested, as in texts. */
export const OBJECT_DEPTH_MAX = 64

export interface ObjectResult {
  readonly document: SourceDocument
  readonly faults: readonly Fault[]
}

/** Makes a document of `value`. Positions have `name` in place of the file. Keys whose value is undefined are left out. */
export function objectDocument(value: unknown, name: string): ObjectResult {
  const position: Position = { file: name, line: 0, column: 0 }
  const faults: Fault[] = []
  const refuse = (path: SourcePath, found: string): undefined => {
    const where = path.length === 0 ? '' : `${formatPath(path)}: `
    faults.push({ position, message: `${where}found ${found}, expected plain data` })
    return undefined
  }
  const copied = copy(value, [], refuse)
  return { document: { value: copied ?? null, positionOf: () => position }, faults }
}

function copy(
  value: unknown,
  path: SourcePath,
  refuse: (path: SourcePath, found: string) => undefined,
): unknown {
  if (path.length > OBJECT_DEPTH_MAX) {
    return refuse(path.slice(0, 3), `lists or mappings nested deeper than ${OBJECT_DEPTH_MAX}`)
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, i) => copy(item ?? null, [...path, i], refuse))
  }
  if (typeof value === 'function') return refuse(path, 'a function')
  if (typeof value === 'symbol' || typeof value === 'bigint')
    return refuse(path, `a ${typeof value}`)
  if (!isMapping(value)) return value
  const prototype: unknown = Object.getPrototypeOf(value)
  // A mapping of another realm, such as the context of a test runner, has another Object.prototype.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
  if (!isPlain) return refuse(path, 'an object of a class')
  const entries = Object.entries(value).flatMap(([key, each]) =>
    each === undefined ? [] : [[key, copy(each, [...path, key], refuse)] as const],
  )
  return Object.setPrototypeOf(Object.fromEntries(entries), null)
}
