// This file reads the daemon's replies. It turns values of unknown type into text for the cells of a table. The names of fields come from the
// client's types (client/api-types.ts). If a daemon of another version leaves a field out, the cell is `-`.

/** An object of a reply. The type of each field is unknown. */
export type Fields = Readonly<Record<string, unknown>>

/** A reply that should have the fields of `Shape`. Each field can be absent, and its type is unknown. */
export type PartOf<Shape> = { readonly [Name in keyof Shape]?: unknown }

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value if it is an object, else an object without fields. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}

/** Returns the value if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the text of one cell, as textOf does, but `yes` and `no` for booleans. */
export function cellOf(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : textOf(value)
}

/** Returns the text of a value: the items of a list with blanks between them, and `-` for null, undefined and what is empty. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(textOf).join(' ')
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns the value if it is a number, else 0. */
export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
