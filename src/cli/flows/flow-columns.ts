// Formats flows as rows of columns. Every column has a width of its own, so that a row is written at once and a stream of flows needs no
// memory. A longer cell moves the rest of its row to the right.

import { nearest } from '../../core/did-you-mean.ts'
import { textOf } from '../fields.ts'
import { shownLabels } from '../shown-labels.ts'
import { cleanCell } from '../table.ts'
import type { FlowFields } from './flow-fields.ts'
import { formatRules, inVerdictColour, type FlowLook } from './flow-text.ts'

interface Column {
  /** In characters. */
  readonly width: number
  readonly cell: (flow: FlowFields, look: FlowLook) => string
}

const COLUMNS: Readonly<Record<string, Column>> = {
  time: { width: 24, cell: (flow, { time }) => time(textOf(flow.time)) },
  last: { width: 24, cell: (flow, { time }) => time(textOf(flow.last ?? flow.time)) },
  number: { width: 8, cell: ({ number }) => textOf(number) },
  verdict: { width: 7, cell: ({ verdict }) => textOf(verdict) },
  kind: { width: 10, cell: ({ kind }) => textOf(kind) },
  endpoint: { width: 14, cell: ({ endpoint }) => textOf(endpoint) },
  'endpoint-labels': {
    width: 24,
    cell: ({ endpointLabels }) => textOf(shownLabels(endpointLabels)),
  },
  address: { width: 15, cell: ({ client, peer }) => textOf(client ?? peer) },
  name: { width: 28, cell: ({ name, names }) => textOf(name ?? names) },
  type: { width: 5, cell: ({ type }) => textOf(type) },
  rcode: { width: 8, cell: ({ rcode }) => textOf(rcode) },
  outcome: { width: 8, cell: ({ outcome }) => textOf(outcome) },
  addresses: { width: 9, cell: ({ addresses }) => textOf(addresses) },
  protocol: { width: 8, cell: ({ protocol }) => textOf(protocol) },
  port: { width: 5, cell: ({ port }) => textOf(port) },
  identity: { width: 8, cell: ({ identity }) => textOf(identity) },
  labels: { width: 24, cell: ({ labels }) => textOf(shownLabels(labels)) },
  count: { width: 5, cell: ({ count }) => textOf(count ?? 1) },
  reason: { width: 12, cell: ({ reason, policies }) => textOf(reason ?? policies) },
  rules: { width: 24, cell: ({ rules }) => formatRules(rules) || '-' },
}

/** The columns of `-o wide`. */
const WIDE =
  'time,verdict,kind,endpoint,address,name,type,rcode,protocol,port,identity,count,reason,rules'.split(
    ',',
  )

/** Reads the value of `--columns`. If a name is unknown, returns the fault as text. */
export function readColumns(text: string | undefined): readonly string[] | string {
  const names = text?.split(',').map((each) => each.trim()) ?? WIDE
  const unknown = names.find((name) => !Object.hasOwn(COLUMNS, name))
  if (unknown === undefined) return names
  const known = Object.keys(COLUMNS)
  const meant = nearest(unknown, known)
  const hint = meant === undefined ? '.' : `; did you mean ${meant}?`
  return `--columns: found ${JSON.stringify(unknown)}${hint} The columns are ${known.join(', ')}`
}

export function formatTitles(names: readonly string[]): string {
  return padded(
    names,
    names.map((name) => name.toUpperCase()),
  ).join('  ')
}

export function formatColumns(names: readonly string[], flow: FlowFields, look: FlowLook): string {
  const cells = names.map((name) => cleanCell(COLUMNS[name]?.cell(flow, look) ?? '-'))
  return padded(names, cells)
    .map((cell, i) =>
      names[i] === 'verdict' ? inVerdictColour(look.style, textOf(flow.verdict), cell) : cell,
    )
    .join('  ')
}

/** Returns the cells, each as wide as its column. The last cell has no blanks after it. */
function padded(names: readonly string[], cells: readonly string[]): readonly string[] {
  return cells.map((cell, i) =>
    i === cells.length - 1 ? cell : cell.padEnd(COLUMNS[names[i] ?? '']?.width ?? 0),
  )
}
