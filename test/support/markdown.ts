// Pieces of the pages that `npm run reference` makes, and readers of JSON of unknown shape.

const MADE = '<!-- Made by `npm run reference`; edit its sources instead. -->'

export function page(title: string, intro: string, body: string): string {
  return `# ${title}\n\n${MADE}\n\n${intro}\n\n${body.trim()}\n`
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

export function code(text: string): string {
  return `\`${text}\``
}

/** A member of an object of unknown shape. Undefined if there is none. */
export function member(of: unknown, key: string): unknown {
  return typeof of === 'object' && of !== null ? new Map(Object.entries(of)).get(key) : undefined
}

export function members(of: unknown, key: string): readonly (readonly [string, unknown])[] {
  const object = member(of, key)
  return typeof object === 'object' && object !== null ? Object.entries(object) : []
}

export function text(of: unknown, key: string): string {
  const value = member(of, key)
  return typeof value === 'string' ? value : ''
}
