// `onlyField` reads a mapping that must have exactly one field, as many mappings of a ClusterNetworkPolicy.

import {
  hasUnsupported,
  isMapping,
  listWords,
  type FieldTable,
  type Reader,
} from '../../documents/source-document.ts'

/** Returns the one field of a mapping that must have exactly one. Returns undefined after a fault, and for an unsupported field. */
export function onlyField(
  reader: Reader,
  table: FieldTable,
): { readonly key: string; readonly field: Reader } | undefined {
  const fields = reader.fields(table)
  if (fields === undefined) return undefined
  const [first, second] = [...fields]
  const words = listWords([...table].flatMap(([key, state]) => (state === true ? [key] : [])))
  if (first === undefined) {
    const isKnown =
      isMapping(reader.value) && Object.keys(reader.value).every((key) => table.has(key))
    return isKnown ? reader.fault(`found no field, expected ${words}`) : undefined
  }
  if (second !== undefined) {
    return second[1].fault(`can not stand beside ${first[0]}, expected one field`, 'key')
  }
  return hasUnsupported(fields, table) ? undefined : { key: first[0], field: first[1] }
}
