// A TableWriter writes tables for people. Each column is as wide as its widest cell, and two blanks separate columns. Cells come from a
// daemon or from files, so control characters in them are written in escaped form and never reach the terminal.

import type { CommandOutput } from './command.ts'

/** Only the first 1000 lines decide the widths, so that a table of a million lines is not kept in memory. */
const MEASURED_ROWS = 1000
const GAP = '  '

/** Writes a table while its lines arrive. */
export class TableWriter {
  readonly #output: CommandOutput
  readonly #titles: readonly string[]
  #waiting: string[][] = []
  #widths: readonly number[] | undefined
  #count = 0

  constructor(output: CommandOutput, titles: readonly string[]) {
    this.#output = output
    this.#titles = titles
  }

  get count(): number {
    return this.#count
  }

  add(cells: readonly string[]): void {
    this.#count++
    const clean = cells.map(cleanCell)
    if (this.#widths !== undefined) {
      this.#output.stdout(formatRow(clean, this.#widths))
      return
    }
    this.#waiting.push(clean)
    if (this.#waiting.length >= MEASURED_ROWS) this.#begin()
  }

  /** Writes the lines that are not written yet. Writes nothing, not even titles, if no line was added. */
  end(): void {
    if (this.#widths === undefined && this.#count > 0) this.#begin()
  }

  #begin(): void {
    const rows = [this.#titles, ...this.#waiting]
    const widths = this.#titles.map((_, column) =>
      Math.max(...rows.map((row) => widthOf(row[column] ?? ''))),
    )
    this.#output.stdout(rows.map((row) => formatRow(row, widths)).join(''))
    this.#waiting = []
    this.#widths = widths
  }
}

/** Returns a whole table as text. */
export function formatTable(titles: readonly string[], rows: Iterable<readonly string[]>): string {
  let text = ''
  const output = { stdout: (part: string) => void (text += part), stderr: () => undefined }
  const writer = new TableWriter(output, titles)
  for (const row of rows) writer.add(row)
  writer.end()
  return text
}

/** Returns lines of the form `name:  value`, with the values in one column. */
export function formatPairs(pairs: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(0, ...pairs.map(([name]) => name.length + 1))
  return pairs
    .map(([name, value]) => `${`${name}:`.padEnd(width)}${GAP}${cleanCell(value)}\n`)
    .join('')
}

/** Returns the text with control characters, line ends and marks of writing direction replaced by `\u{..}`. */
export function cleanCell(text: string): string {
  return text.replace(/\p{C}/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

function formatRow(cells: readonly string[], widths: readonly number[]): string {
  const last = cells.length - 1
  const padded = cells.map((cell, i) =>
    i === last ? cell : cell + ' '.repeat(Math.max(0, (widths[i] ?? 0) - widthOf(cell))),
  )
  return `${padded.join(GAP).trimEnd()}\n`
}

/** Returns the number of code points. It is the width of Latin script, which is enough for these cells. */
function widthOf(text: string): number {
  return Array.from(text).length
}
