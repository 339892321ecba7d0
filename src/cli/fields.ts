// Reading what a daemon answered: values of unknown form become text for a cell, and lists of rows are taken
// apart as they come. A daemon of another version may leave fields out; then a cell is empty.

export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** One cell: lists with blanks between, nothing as `-`. */
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
