// This file reads the daemon's replies. It turns values of unknown type into text for the cells of a table, and splits long lists into
// their lines while the reply arrives. The names of fields come from the API's schemas (admin/shapes.ts), of which only the types are
// imported. If a daemon of another version leaves a field out, the cell is `-`.

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

/** Yields the objects of a reply that has one JSON object per line: a list, or a stream of flows. Throws SyntaxError for other lines. */
export async function* rowsIn(parts: AsyncIterable<string>): AsyncIterable<Fields> {
  for await (const line of linesIn(parts)) {
    if (!line.startsWith('{')) continue
    const row: unknown = JSON.parse(line.endsWith(',') ? line.slice(0, -1) : line)
    if (isFields(row)) yield row
  }
}

async function* linesIn(parts: AsyncIterable<string>): AsyncIterable<string> {
  let rest = ''
  for await (const part of parts) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
