// `npm run conformance`: runs the rows of the table over the wire in every mode, and the tests elsewhere that rows name,
// then prints the table with the results of this very run. Exit 1 when anything failed or was not there.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MODES, type Mode } from './lab/world.ts'
import type { Row, TestsRow } from './rows/row.ts'
import { ROWS } from './table.ts'

interface Result {
  readonly file: string
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  readonly reason?: string
}

interface Line {
  readonly cells: readonly string[]
  readonly failed: boolean
}

const HEAD = ['id', ...MODES, 'what', 'where']

function main(): number {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-conformance-'))
  try {
    const path = join(folder, 'results.json')
    const elsewhere = ROWS.flatMap((row) => (row.kind === 'tests' ? row.tests : []))
      .map(([file]) => file)
      .filter(isRun)
    const files = [
      ...new Set([...MODES.map((mode) => `conformance/${mode}.test.ts`), ...elsewhere]),
    ]
    const args = ['scripts/test.mjs', '--results', path, ...files]
    spawnSync(process.execPath, args, { stdio: 'inherit' })
    return print(JSON.parse(readFileSync(path, 'utf8')) as Result[])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function print(results: readonly Result[]): number {
  const lines = ROWS.map((row) => lineOf(row, results))
  const all = [HEAD, ...lines.map(({ cells }) => cells)]
  const widths = HEAD.map((_, i) => Math.max(...all.map((cells) => cells[i]?.length ?? 0)))
  const last = HEAD.length - 1
  const text = all.map((cells) =>
    cells.map((cell, i) => (i === last ? cell : cell.padEnd(widths[i] ?? 0))).join('  '),
  )
  const failed = lines.filter((line) => line.failed).length
  console.log(`\n${text.join('\n')}\n`)
  const wire = results.filter(({ file }) => file.startsWith('test/conformance/')).length
  console.log(`${ROWS.length} rows, ${wire} tests over the wire, ${failed} rows failed`)
  return failed === 0 ? 0 : 1
}

function lineOf(row: Row, results: readonly Result[]): Line {
  const note = row.note === undefined ? '' : ` (${row.note})`
  switch (row.kind) {
    case 'left-out':
      return mkLine(
        row,
        MODES.map(() => '-'),
        `left out: ${row.reason}`,
      )
    case 'tests': {
      const isSeen = row.tests.some(([file]) => isRun(file))
      const outcome = isSeen ? outcomeOf(testsOf(row, results)) : 'not run here'
      const where = row.tests.map(placeOf)
      return mkLine(
        row,
        MODES.map(() => '-'),
        `${outcome}: ${where.join('; ')}${note}`,
      )
    }
    case 'exchange':
    case 'script': {
      const cells = MODES.map((mode) => outcomeOf(results.filter((each) => isOf(row, mode, each))))
      return mkLine(row, cells, `wire${note}`)
    }
  }
}

function placeOf([file, name]: TestsRow['tests'][number]): string {
  const place = name === '' ? file : `${file}: ${name}`
  return isRun(file) ? place : `${place} (by npm test)`
}

function mkLine(row: Row, modes: readonly string[], where: string): Line {
  const cells = [row.id, ...modes, row.what, where]
  return { cells, failed: [...modes, where].some((cell) => /^(?:FAILED|missing)/.test(cell)) }
}

function isOf(row: Row, mode: Mode, { name }: Result): boolean {
  return name.split(' > ').includes(`${row.id} ${mode}: ${row.what}`)
}

/** Every test named is there, or the row is missing something. */
function testsOf(row: TestsRow, results: readonly Result[]): readonly Result[] {
  const run = row.tests.filter(([file]) => isRun(file))
  const found = run.map(([file, name]) =>
    results.filter((each) => each.file === file && each.name.includes(name)),
  )
  return found.some((each) => each.length === 0) ? [] : found.flat()
}

/** Kernel tests take their time; `npm test` runs them. */
function isRun(file: string): boolean {
  return !file.startsWith('test/kernel/')
}

function outcomeOf(results: readonly Result[]): string {
  if (results.length === 0) return 'missing'
  if (results.some(({ outcome }) => outcome === 'failed')) return 'FAILED'
  if (results.every(({ outcome }) => outcome === 'skipped')) return 'skipped'
  return results.length === 1 ? 'passed' : `passed ${results.length}`
}

process.exitCode = main()
