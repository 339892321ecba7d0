// Formats the most frequent names, endpoints and refusals, and the upstreams, as lines of a given width.

import type { Status, Top } from '../../client/api-types.ts'
import { deniedWords } from '../../flows/record/flow-words.ts'
import { fieldsOf, listOf, numberOf, textOf, type PartOf } from '../fields.ts'
import { byRules, inVerdictColour } from '../flows/flow-text.ts'
import type { Style } from '../style.ts'
import { cleanCell } from '../table.ts'

export interface TopText {
  readonly top: PartOf<Top>
  readonly status: PartOf<Status>
  /** In characters. */
  readonly width: number
  /** How many rows each list has at most. */
  readonly rows: number
  readonly style: Style
}

/** How many lines are no rows of lists: titles, blank lines, and the summary. */
export const FIXED_LINES = 9
const GAP = '  '
const COUNT_WIDTH = 8
const NONE = ['  none']

export function formatTop({ top, status, width, rows, style }: TopText): readonly string[] {
  const cut = (text: string): string => cutTo(cleanCell(text), width)
  const title = (text: string): string => style(cut(text), 'bold')
  const section = (head: string, lines: readonly string[]): readonly string[] => [
    '',
    title(head),
    ...(lines.length === 0 ? NONE : lines.slice(0, rows).map(cut)),
  ]
  const refused = refusedTitle(top)
  return [
    title(summary(top)),
    verdictLine(top, style, width),
    ...section(`${heads('FLOWS', refused)}NAME`, listOf(top.names).map(nameLine)),
    ...section(`${heads('FLOWS', refused)}ENDPOINT`, listOf(top.endpoints).map(endpointLine)),
    ...section(`${heads(refused)}WHAT`, listOf(top.refusals).map(refusalLine)),
    ...section(`${heads('RTT MS', 'FAILED')}UPSTREAM`, slowest(status.upstreams).map(upstreamLine)),
  ]
}

function summary({ time, seconds, flows }: PartOf<Top>): string {
  const [count, span] = [numberOf(flows), numberOf(seconds)]
  const rate = span === 0 ? '0' : (count / span).toFixed(1)
  return `namegate top  ${textOf(time).slice(11, 19)}  ${count} flows in ${Math.round(span)} s, ${rate}/s`
}

/** Returns the title of the counts of flows that policy does not allow. In audit they pass. */
function refusedTitle({ verdicts }: PartOf<Top>): string {
  const { deny, audit }: PartOf<Top['verdicts']> = fieldsOf(verdicts)
  return numberOf(deny) === 0 && numberOf(audit) > 0 ? 'AUDITED' : 'REFUSED'
}

function verdictLine({ verdicts }: PartOf<Top>, style: Style, width: number): string {
  const all = fieldsOf(verdicts)
  let left = width
  return Object.keys(all)
    .flatMap((verdict) => {
      const text = `${verdict} ${textOf(all[verdict])}${GAP}`
      left -= text.length
      return left < 0 ? [] : [inVerdictColour(style, verdict, text)]
    })
    .join('')
    .trimEnd()
}

function heads(...titles: readonly string[]): string {
  return titles.map((each) => each.padStart(COUNT_WIDTH) + GAP).join('')
}

function counts(...values: readonly unknown[]): string {
  return heads(...values.map(textOf))
}

function nameLine(row: unknown): string {
  const { name, flows, refused }: PartOf<Top['names'][number]> = fieldsOf(row)
  return counts(flows, refused) + textOf(name)
}

function endpointLine(row: unknown): string {
  const { endpoint, flows, refused }: PartOf<Top['endpoints'][number]> = fieldsOf(row)
  return counts(flows, refused) + endpointOf(endpoint)
}

/** A flow has no endpoint if no endpoint has the address of its client, or if the endpoint is gone. */
function endpointOf(endpoint: unknown): string {
  return typeof endpoint === 'string' ? endpoint : '(addresses of no endpoint)'
}

function refusalLine(row: unknown): string {
  const part: PartOf<Top['refusals'][number]> = fieldsOf(row)
  const names = listOf(part.names)
  const named = names.length === 0 ? '' : ` (${names.map(textOf).join(', ')})`
  const why = `${deniedWords(textOf(part.reason))}${byRules(part.rules)}`
  return `${counts(part.count)}${endpointOf(part.endpoint)}  ${textOf(part.what)}${named}: ${why}`
}

/** Upstreams, the slowest first. Upstreams that failed or did not answer come before these. */
function slowest(upstreams: unknown): readonly PartOf<Status['upstreams'][number]>[] {
  const slowness = ({ state, rttMs }: PartOf<Status['upstreams'][number]>): number =>
    state === 'up' ? numberOf(rttMs) : Number.POSITIVE_INFINITY
  const list: readonly PartOf<Status['upstreams'][number]>[] = listOf(upstreams).map(fieldsOf)
  return list.toSorted((a, b) =>
    slowness(a) < slowness(b) ? 1 : slowness(a) > slowness(b) ? -1 : 0,
  )
}

function upstreamLine(part: PartOf<Status['upstreams'][number]>): string {
  const rtt = typeof part.rttMs === 'number' ? part.rttMs.toFixed(1) : '-'
  return `${counts(rtt, part.failures)}${textOf(part.address)} ${textOf(part.state)}`
}

/** Cuts the text to the width, and marks the cut. */
function cutTo(text: string, width: number): string {
  const characters = Array.from(text)
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join('')}…`
}
