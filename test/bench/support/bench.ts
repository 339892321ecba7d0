// The frame of a benchmark. A file test/bench/NAME.bench.ts ends with `await runBench({...})` and is a program of its own, so that no
// benchmark warms, fills or slows another. It prints an aligned table, or one object with `-o json`. A limit is information; with --strict, a
// figure over its limit gives exit code 1.

import { keepYoungSmall } from '../../../src/native/young-generation.ts'

export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'us' | 'ms' | 's' | 'MB' | 'x' | 'B' | '%' | ''
  /** The highest allowed value. */
  readonly limit?: number
  /** Lowest and highest value over the rounds. */
  readonly spread?: readonly [least: number, most: number]
}

export interface Bench {
  readonly name: string
  /** The subject of the measurement, in one line. */
  readonly about: string
  run(): readonly Figure[] | Promise<readonly Figure[]>
}

export interface BenchReport {
  readonly bench: string
  readonly about: string
  readonly figures: readonly Figure[]
}

/** Whether the figure is over its limit. A figure that is not a number is over every limit. */
export function isOver(figure: Figure): boolean {
  return figure.limit !== undefined && !(figure.value <= figure.limit)
}

/** Runs the benchmark with the young generation of the daemon, and prints it in the form that the command line asks for. */
export async function runBench(bench: Bench): Promise<void> {
  const args = process.argv.slice(2)
  keepYoungSmall()
  const figures = await bench.run()
  const report: BenchReport = { bench: bench.name, about: bench.about, figures }
  process.stdout.write(args.includes('json') ? `${JSON.stringify(report)}\n` : formatReport(report))
  if (args.includes('--strict') && figures.some(isOver)) process.exitCode = 1
}

export function formatReport(report: BenchReport): string {
  const head = ['', 'value', 'least', 'most', 'limit', '']
  const rows = report.figures.map((figure) => [
    figure.name,
    formatValue(figure.value, figure.unit),
    figure.spread === undefined ? '' : formatValue(figure.spread[0], figure.unit),
    figure.spread === undefined ? '' : formatValue(figure.spread[1], figure.unit),
    figure.limit === undefined ? '' : formatValue(figure.limit, figure.unit),
    figure.limit === undefined ? '' : isOver(figure) ? 'over' : 'ok',
  ])
  return `${report.bench}: ${report.about}\n${formatTable([head, ...rows])}\n`
}

/** Columns padded to their widest cell: the first `left` and the last to the left, numbers to the right. */
export function formatTable(rows: readonly (readonly string[])[], left = 1): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows
    .map((row) => {
      const cells = row.map((cell, i) =>
        i < left || i === row.length - 1
          ? cell.padEnd(widths[i] ?? 0)
          : cell.padStart(widths[i] ?? 0),
      )
      return `  ${cells.join('  ').trimEnd()}\n`
    })
    .join('')
}

/** Three significant digits, never an exponent. */
function formatValue(value: number, unit: Figure['unit']): string {
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  const text = Number.isInteger(value) ? String(value) : value.toFixed(Math.min(digits, 4))
  return unit === '' ? text : `${text} ${unit}`
}
