// `npm run conformance`: runs the rows of the table over the wire in the modes that they depend on, and the tests elsewhere that rows name.
// Then prints the table with the results of this run. Exits with 1 if a test failed or was missing.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MODES } from './lab/world.ts'
import { faultsOf, namedOutcome, wireOutcome, type Result, type Told } from './results.ts'
import { runsIn, type Row, type TestsRow } from './rows/row.ts'
import { ROWS } from './table.ts'

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
  const all = [HEAD, ...ROWS.map((row) => cellsOf(row, results))]
  const widths = HEAD.map((_, i) => Math.max(...all.map((cells) => cells[i]?.length ?? 0)))
  const last = HEAD.length - 1
  const text = all.map((cells) =>
    cells.map((cell, i) => (i === last ? cell : cell.padEnd(widths[i] ?? 0))).join('  '),
  )
  const failed = ROWS.filter((row) => faultsOf([row], MODES, results, true).length > 0).length
  console.log(`\n${text.join('\n')}\n`)
  const wire = results.filter(({ file }) => file.startsWith('test/conformance/')).length
  console.log(`${ROWS.length} rows, ${wire} tests over the wire, ${failed} rows failed`)
  return failed === 0 ? 0 : 1
}

function cellsOf(row: Row, results: readonly Result[]): readonly string[] {
  const note = row.note === undefined ? '' : ` (${row.note})`
  const modes = MODES.map((mode) => {
    const isHere = row.kind === 'script' || (row.kind === 'exchange' && runsIn(row, mode))
    return isHere ? textOf(wireOutcome(row, mode, results)) : '-'
  })
  return [row.id, ...modes, row.what, `${whereOf(row, results)}${note}`]
}

function whereOf(row: Row, results: readonly Result[]): string {
  switch (row.kind) {
    case 'left-out':
      return `left out: ${row.reason}`
    case 'tests':
      return row.tests.map((each) => placeOf(each, results)).join('; ')
    case 'exchange':
    case 'script':
      return 'wire'
  }
}

function placeOf(test: TestsRow['tests'][number], results: readonly Result[]): string {
  const [file, name] = test
  const place = name === '' ? file : `${file}: ${name}`
  const told = namedOutcome(test, results)
  return told === undefined ? `${place} (by npm test)` : `${textOf(told)}: ${place}`
}

function textOf({ outcome, count }: Told): string {
  return outcome === 'passed' && count > 1 ? `passed ${count}` : outcome
}

/** Kernel tests take long. `npm test` runs them. */
function isRun(file: string): boolean {
  return !file.startsWith('test/kernel/')
}

process.exitCode = main()
