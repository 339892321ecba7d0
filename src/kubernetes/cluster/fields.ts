// Reads fields of values whose shape an API server checked. A field with another shape counts as absent.

import { isMapping } from '../../documents/source-document.ts'

export function fieldAt(value: unknown, key: string): unknown {
  return isMapping(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

export function textAt(value: unknown, key: string): string | undefined {
  const field = fieldAt(value, key)
  return typeof field === 'string' ? field : undefined
}

export function listAt(value: unknown, key: string): readonly unknown[] {
  const field = fieldAt(value, key)
  return Array.isArray(field) ? field : []
}
