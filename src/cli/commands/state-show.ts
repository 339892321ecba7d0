// `showState` writes the output of `namegate state show`: the head of the file and then tables, or one JSON object. Entries are written in
// small parts, so that the text of a million entries is never in memory.

import { formatAddress } from '../../core/ip-text.ts'
import { formatName } from '../../core/name.ts'
import { formatSize } from '../../core/quantity.ts'
import { wallOf, type Inspection } from '../../state/inspect.ts'
import type { CommandOutput } from '../command.ts'
import { formatPairs, formatTable, TableWriter } from '../table.ts'

type Read = Extract<Inspection, { kind: 'read' }>

/** How many entries of JSON are written together. */
const ROWS_AT_ONCE = 1000

interface PairRow {
  readonly endpoint: number
  readonly name: string
  readonly address: string
  /** The end of the TTL (RFC 3339). */
  readonly until: string
  /** The grace: seconds from `until` until the entry can be removed. */
  readonly grace: number
}

/** Writes the contents of a file of the state folder. If the file is damaged, writes what was read before the damage. */
export function showState(file: string, read: Read, json: boolean, output: CommandOutput): void {
  if (json) writeJson(file, read, output)
  else writeText(file, read, output)
}

function writeText(file: string, read: Read, output: CommandOutput): void {
  const { header, state, records } = read
  const what = header.kind === 'image' ? 'checkpoint' : 'journal'
  const given = Object.entries(records).map(([kind, count]) => `${count} ${kind}`)
  const before = header.startsEmpty ? ', from an empty start' : ''
  output.stdout(
    formatPairs([
      ['file', file],
      ['kind', `${what} of generation ${header.generation}, run ${header.run}${before}`],
      ['format', `${header.version}, label rules ${header.labelRules}`],
      ['begun', timeOf(header.begun.wallMs)],
      ['last write', timeOf(read.lastWrite.wallMs)],
      ['size', `${formatSize(read.octets)}, ${read.frames} writes`],
      ['records', `${given.join(', ')}; ${read.strays} about pairs of earlier files`],
      ['holds', `${state.numbers.length} numbers, ${state.pairs.count} pairs`],
    ]),
  )
  const tables = [
    formatTable(
      ['NUMBER', 'LABELS'],
      state.numbers.map(({ id, labels }) => [String(id), labels.join(' ')]),
    ),
    formatTable(['ENDPOINT', 'DOCUMENT'], state.endpoints),
    formatTable(
      ['SOURCE FILE', 'OCTETS'],
      [...state.sourceFiles].map(([key, text]) => [key, String(Buffer.byteLength(text))]),
    ),
  ]
  for (const table of tables) if (table !== '') output.stdout(`\n${table}`)
  if (state.pairs.count > 0) output.stdout('\n')
  const writer = new TableWriter(output, ['ENDPOINT', 'NAME', 'ADDRESS', 'UNTIL', 'GRACE'])
  for (const { endpoint, name, address, until, grace } of pairRows(read)) {
    writer.add([String(endpoint), name, address, until, `${grace}s`])
  }
  writer.end()
}

function writeJson(file: string, read: Read, output: CommandOutput): void {
  const { header, state } = read
  const head = {
    file,
    kind: header.kind === 'image' ? 'checkpoint' : 'journal',
    format: header.version,
    labelRules: header.labelRules,
    generation: header.generation,
    run: header.run,
    startsEmpty: header.startsEmpty,
    begun: timeOf(header.begun.wallMs),
    lastWrite: timeOf(read.lastWrite.wallMs),
    octets: read.octets,
    goodOctets: read.goodOctets,
    records: read.records,
    strays: read.strays,
    fault:
      read.fault === undefined ? null : { offset: read.fault.offset, reason: read.fault.reason },
    numbers: state.numbers,
    endpoints: [...state.endpoints].map(([key, text]) => ({ key, text })),
    sourceFiles: [...state.sourceFiles].map(([key, text]) => ({ file: key, text })),
  }
  output.stdout(JSON.stringify(head, null, 2).replace(/\n\}$/, ',\n  "pairs": ['))
  let [rows, count] = ['', 0]
  for (const row of pairRows(read)) {
    rows += `${count === 0 ? '' : ','}\n    ${JSON.stringify(row)}`
    if (++count % ROWS_AT_ONCE !== 0) continue
    output.stdout(rows)
    rows = ''
  }
  output.stdout(`${rows}${count === 0 ? '' : '\n  '}]\n}\n`)
}

function* pairRows({ state: { pairs }, header }: Read): Iterable<PairRow> {
  for (let row = 0; row < pairs.count; row++) {
    const octets = pairs.octets(row)
    yield {
      endpoint: pairs.endpoint(row),
      name: formatName(octets, pairs.nameAt(row)),
      address: formatAddress(pairs.family(row) === 4 ? 4 : 6, octets, pairs.addressAt(row)),
      until: timeOf(wallOf(pairs.until(row), header)),
      grace: pairs.grace(row),
    }
  }
}

/** Returns the time in RFC 3339. A time that JavaScript's Date cannot represent becomes the nearest time that it can represent. */
function timeOf(wallMs: number): string {
  const bound = 8.64e15
  return new Date(Math.max(-bound, Math.min(bound, wallMs))).toISOString()
}
