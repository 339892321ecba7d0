// Reads the daemon's answers: unknown values become text for a cell, and lists of rows are split as they come. Names of fields
// are those of the API's schemas (admin/shapes.ts), whose types alone are imported. A daemon of another version may leave
// fields out; then a cell is empty.

export type Fields = Readonly<Record<string, unknown>>

/** An answer that should be a `Shape`: its fields by name, each of them unknown. */
export type PartOf<Shape> = { readonly [Name in keyof Shape]?: unknown }

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** One cell: lists with blanks between, nothing as `-`, flags as yes and no. */
export function cellOf(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : textOf(value)
}

/** Text of a value: lists with blanks between, nothing as `-`. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(textOf).join(' ')
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** Lines of JSON: of a list that has a row a line, or of flows. */
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
