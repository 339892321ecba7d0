// The outcome of a row of the table over the results of one run, as scripts/test.mjs writes them. A row is proved if every test that it
// names ran, none failed, and not all were skipped.

import { existsSync } from 'node:fs'
import type { Mode } from './lab/world.ts'
import { runsIn, type Row, type TestsRow } from './rows/row.ts'

export interface Result {
  readonly file: string
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  readonly reason?: string
}

export type Outcome = 'passed' | 'FAILED' | 'missing' | 'skipped'

export interface Told {
  readonly outcome: Outcome
  /** The number of tests. */
  readonly count: number
}

/** The outcome of a row over the wire, in one mode. */
export function wireOutcome(row: Row, mode: Mode, results: readonly Result[]): Told {
  const title = `${row.id} ${mode}: ${row.what}`
  return outcomeOf(results.filter(({ name }) => name.split(' > ').includes(title)))
}

/** The outcome of one test that a row names. A missing file is missing in every run. */
export function namedOutcome(
  [file, name]: TestsRow['tests'][number],
  results: readonly Result[],
): Told | undefined {
  const isSeen = results.some((each) => each.file === file) || !existsSync(file)
  if (!isSeen) return undefined
  return outcomeOf(results.filter((each) => each.file === file && each.name.includes(name)))
}

export function outcomeOf(results: readonly Result[]): Told {
  const count = results.length
  if (count === 0) return { outcome: 'missing', count }
  if (results.some(({ outcome }) => outcome === 'failed')) return { outcome: 'FAILED', count }
  const isSkipped = results.every(({ outcome }) => outcome === 'skipped')
  return { outcome: isSkipped ? 'skipped' : 'passed', count }
}

/** The rows that the tests of a run do not prove. Files that did not run prove nothing and refute nothing. */
export function faultsOf(
  rows: readonly Row[],
  modes: readonly Mode[],
  results: readonly Result[],
  maySkip: boolean,
): readonly string[] {
  const isFault = ({ outcome }: Told): boolean =>
    outcome !== 'passed' && !(outcome === 'skipped' && maySkip)
  const files = new Set(results.map(({ file }) => file))
  return rows.flatMap((row) => {
    switch (row.kind) {
      case 'left-out':
        return []
      case 'tests':
        return row.tests.flatMap((test) => {
          const told = namedOutcome(test, results)
          return told !== undefined && isFault(told)
            ? [`${row.id}: ${told.outcome}: ${test.join(': ')}`]
            : []
        })
      case 'exchange':
      case 'script':
        return modes
          .filter((mode) => files.has(`test/conformance/${mode}.test.ts`) && runsIn(row, mode))
          .map((mode) => [mode, wireOutcome(row, mode, results)] as const)
          .filter(([, told]) => isFault(told))
          .map(([mode, { outcome }]) => `${row.id} ${mode}: ${outcome}: ${row.what}`)
    }
  })
}
