// The report as text: head, the table, what each peer lacks, the criteria. Pure.

import { formatTable } from '../support/bench.ts'
import { verdictOf, type Criterion } from './criteria.ts'
import type { Figures } from './load-result.ts'
import { ABILITIES, type LoadName, type SubjectName } from './subjects.ts'
import type { Pace } from './turn.ts'

export interface Row {
  readonly load: LoadName
  readonly pace: Pace
  readonly subject: SubjectName
  /** Medians. */
  readonly figures: Figures
  /** Lowest and highest q/s over the rounds. */
  readonly qpsSpread: readonly [least: number, most: number]
  readonly rounds: number
  readonly note: string
}

export interface Report {
  readonly head: readonly string[]
  readonly settings: readonly (readonly [SubjectName, string])[]
  readonly leftOut: readonly (readonly [SubjectName, string])[]
  readonly rows: readonly Row[]
  readonly criteria: readonly Criterion[]
}

const HEAD = [
  'load', 'pace', 'proxy', 'q/s', 'least', 'most', 'CPU us/q', 'p50 us', 'p99 us', 'p99.9 us', 'lost', 'NOERROR',
  'RSS MB', 'generator us/q', 'upstream us/q',
] // prettier-ignore

export function formatReport(report: Report): string {
  const settings = report.settings.map(([name, text]) => `  ${name}: ${text}\n`).join('')
  const leftOut = report.leftOut.map(([name, text]) => `  ${name}: left out: ${text}\n`).join('')
  return [
    `${report.head.join('\n')}\n`,
    `settings\n${settings}${leftOut}`,
    formatRows(report.rows),
    formatNotes(report.rows),
    `What each peer does not do\n${formatAbilities()}`,
    `Criteria\n${formatCriteria(report.criteria)}`,
  ].join('\n')
}

export function formatRows(rows: readonly Row[]): string {
  const cells = rows.map(({ load, pace, subject, figures, qpsSpread }) => [
    load,
    pace,
    subject,
    number(figures.qps, 0),
    ...qpsSpread.map((value) => number(value, 0)),
    number(figures.cpu, 1),
    number(figures.p50, 0),
    number(figures.p99, 0),
    number(figures.p999, 0),
    percent(figures.lost),
    percent(figures.noerror),
    number(figures.rssMb, 0),
    number(figures.generator, 1),
    number(figures.upstream, 1),
  ])
  return formatTable([HEAD, ...cells], 3)
}

function formatNotes(rows: readonly Row[]): string {
  const notes = rows
    .filter(({ note, pace }) => note !== '' && pace === 'peak')
    .map(({ load, subject, note }) => `  ${subject}, ${load}: answers and bounds: ${note}\n`)
  const doubts = rows
    .map((row) => ({ row, text: doubtsOf(row).join(', ') }))
    .filter(({ text }) => text !== '')
    .map(({ row, text }) => `  ${row.subject}, ${row.load} ${row.pace}: doubtful: ${text}\n`)
  return [...notes, ...doubts].join('')
}

/** The doubts about a row. */
function doubtsOf({ figures, pace, subject }: Row): readonly string[] {
  const { wrong, late, others, qps, cpu, generator, upstream } = figures
  const loadCpu = ((generator + upstream) * qps) / 1e6
  return [
    ...(wrong > 0 ? [`${wrong} answers to nothing asked`] : []),
    ...(late > 0.02 ? [`${percent(late)} sent late`] : []),
    ...(others > 0.25 ? [`others kept ${others.toFixed(1)} CPUs busy`] : []),
    ...(pace === 'peak' && subject !== 'direct' && loadCpu > 0.95 && cpu * qps < 850_000
      ? ['load and upstream were the limit']
      : []),
  ]
}

function formatAbilities(): string {
  const names = Object.keys(ABILITIES[0]?.[1] ?? {})
  const cells = ABILITIES.map(([ability, done]) => [
    ability,
    ...names.map((name) => done[name] ?? ''),
  ])
  return formatTable([['', ...names], ...cells], 1 + names.length)
}

export function formatCriteria(criteria: readonly Criterion[]): string {
  const cells = criteria.map((criterion) => {
    const { name, value, unit, limit, atLeast, goal } = criterion
    const bound = `${atLeast ? '>=' : '<='} ${limit} ${unit}`
    const wish = goal === undefined ? '' : `${goal} ${unit}`
    return [
      name,
      `${number(value, unit === 'x' ? 2 : 0)} ${unit}`,
      bound,
      wish,
      verdictOf(criterion),
    ]
  })
  return formatTable([['', 'value', 'limit', 'goal', ''], ...cells])
}

function number(value: number, digits: number): string {
  return Number.isNaN(value) ? '-' : value.toFixed(digits)
}

/** Two digits after the point, but 0% only for none and 100% only for all. */
function percent(share: number): string {
  if (Number.isNaN(share)) return '-'
  if (share > 0 && share < 0.0001) return '<0.01%'
  return `${(share === 1 ? 100 : Math.min(99.99, share * 100)).toFixed(share === 0 || share === 1 ? 0 : 2)}%`
}
