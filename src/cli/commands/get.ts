// `runGet` runs `namegate get TABLE`. The command prints a table of a running daemon, as columns or as the JSON of the daemon.

import { parseMaskedPrefix } from '../../core/ip.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import { parseMatchPattern } from '../../policy/match/pattern.ts'
import type { Name, Operations, Prefix } from '../../client/api-types.ts'
import type { Client } from '../../client/client.ts'
import { decodeRows, gather } from '../../client/decode.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { cellOf, fieldsOf, listOf, textOf, type Fields, type PartOf } from '../fields.ts'
import { repeat } from '../repeat.ts'
import { shownLabels } from '../shown-labels.ts'
import { TableWriter } from '../table.ts'

type TableName =
  | 'endpoints'
  | 'policies'
  | 'selectors'
  | 'names'
  | 'ipcache'
  | 'identities'
  | 'resources'
  | 'sources'
  | 'datapath'
type RowOf<Table extends TableName> = Operations[`GET /v1/${Table}`]['row']

/** One column. Its cell is one field of a line, or a text that a function makes from several fields. */
type Column<Shape> = readonly [title: string, cell: keyof Shape | ((row: PartOf<Shape>) => string)]

/** How many addresses, or owners, a cell shows at most. */
const ADDRESSES_SHOWN = 4

const TABLES: { readonly [Table in TableName]: readonly Column<RowOf<Table>>[] } = {
  endpoints: [
    ['ID', 'id'],
    ['NAME', 'name'],
    ['ADDRESSES', 'addresses'],
    ['ENFORCING', 'enforcing'],
    ['AUDIT', 'audit'],
    ['REVISION', (row) => `${textOf(row.realizedRevision)}/${textOf(row.policyRevision)}`],
    ['POLICIES', 'policies'],
    ['LABELS', ({ labels }) => textOf(shownLabels(labels))],
    ['REASON', 'reason'],
  ],
  policies: [
    ['NAMESPACE', 'namespace'],
    ['NAME', 'name'],
    ['STATE', 'state'],
    ['ENDPOINTS', 'endpoints'],
    ['SELECTORS', 'selectors'],
    ['UNSEEN', 'unseen'],
    ['FILE', 'file'],
    ['ERROR', (row) => textOf(row.error).replaceAll('\n', '; ')],
  ],
  selectors: [
    ['SELECTOR', 'selector'],
    ['KIND', 'kind'],
    ['NAMES', 'names'],
    ['SEEN', 'seen'],
    ['IDENTITIES', 'identities'],
    ['POLICIES', 'policies'],
  ],
  names: [
    ['NAME', 'name'],
    ['ENDPOINT', 'endpoint'],
    ['ADDRESSES', addresses],
    ['SELECTORS', 'selectors'],
  ],
  ipcache: [
    ['PREFIX', 'prefix'],
    ['IDENTITY', 'identity'],
    ['ENDPOINT', ({ endpoint = '(all)' }) => textOf(endpoint)],
    ['LABELS', ({ labels }) => textOf(shownLabels(labels))],
    ['OWNERS', owners],
  ],
  identities: [
    ['ID', 'id'],
    ['REFERENCES', 'references'],
    ['PREALLOCATED', 'preallocated'],
    ['LABELS', ({ labels }) => textOf(shownLabels(labels))],
  ],
  resources: [
    ['NAME', 'name'],
    ['ORIGIN', 'origin'],
    ['EXPIRES', 'expires'],
    ['ADDRESSES', 'addresses'],
    ['LABELS', ({ labels }) => textOf(shownLabels(labels))],
  ],
  sources: [
    ['ORIGIN', 'origin'],
    ['KIND', 'kind'],
    ['STATE', 'state'],
    ['OBJECTS', 'objects'],
    ['FAULTY', 'faulty'],
    [
      'AGE',
      (row) => (row.age === undefined || Number(row.age) < 0 ? 'never' : `${textOf(row.age)}s`),
    ],
    ['REASON', 'reason'],
  ],
  datapath: [
    ['MAP', 'map'],
    ['KEY', 'key'],
    ['VALUE', 'value'],
  ],
}

/** The tables that the filters select from. */
const FILTERED = ['names', 'ipcache', 'identities'] as const
const FILTERS = ['endpoint', 'name', 'prefix'] as const
const INTERVAL_MS = 2000
const INTERVAL_MS_MIN = 100

export async function runGet(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [resource = '', ...rest] = read.positionals
  if (!isShown(resource) || rest.length > 0) {
    return read.wrong(wrongResource(resource, rest))
  }
  const query = filtersOf(read, resource)
  if (typeof query === 'string') return read.wrong(query)
  const interval = parseDuration(read.texts.get('interval') ?? `${INTERVAL_MS}ms`)
  if (interval === undefined || interval < INTERVAL_MS_MIN) {
    return read.wrong(`--interval: expected at least ${INTERVAL_MS_MIN}ms, as ${DURATION_FORM}`)
  }
  const client = await openClient(read)
  const isJson = read.texts.has('output')
  if (!read.flags.has('watch')) {
    await print(resource, tableOf(client, resource, query), isJson, output)
    return EXIT_OK
  }
  let before: string | undefined
  await repeat(output.terminal, interval, async () => {
    const text = await gather(tableOf(client, resource, query))
    if (text === before) return
    if (before !== undefined && !isJson) output.stdout('\n')
    before = text
    await print(resource, once(text), isJson, output)
  })
  return EXIT_OK
}

interface Filters {
  endpoint?: string
  name?: string
  prefix?: string
}

/** Asks the daemon for the table. */
function tableOf(client: Client, resource: TableName, query: Filters): AsyncIterable<string> {
  const filtered = FILTERED.find((each) => each === resource)
  return filtered === undefined
    ? client.text(`GET /v1/${resource}`)
    : client.text(`GET /v1/${filtered}`, { query })
}

/** Returns the filters of the options. If a filter is wrong, returns the fault as text. */
function filtersOf({ texts }: ParsedArguments, resource: TableName): Filters | string {
  const query: Filters = {}
  for (const name of FILTERS) {
    const value = texts.get(name)
    if (value === undefined) continue
    if (!FILTERED.some((each) => each === resource)) {
      return `get ${resource} has no --${name}; only ${FILTERED.join(', ')} have filters`
    }
    query[name] = value
  }
  const [name, prefix] = [texts.get('name'), texts.get('prefix')]
  const pattern = name === undefined ? undefined : parseMatchPattern(name)
  if (pattern?.kind === 'bad') return `--name: ${pattern.reason}`
  const parsed = prefix === undefined ? undefined : parseMaskedPrefix(prefix)
  if (parsed?.kind === 'bad') return `--prefix: ${parsed.reason}`
  return query
}

async function print(
  resource: TableName,
  parts: AsyncIterable<string>,
  isJson: boolean,
  output: CommandOutput,
): Promise<void> {
  if (isJson) {
    for await (const part of parts) output.stdout(part)
    return
  }
  const columns: readonly Column<Fields>[] = TABLES[resource]
  const table = new TableWriter(
    output,
    columns.map(([title]) => title),
  )
  for await (const row of decodeRows<Fields>(parts)) {
    table.add(
      columns.map(([, cell]) => (typeof cell === 'function' ? cell(row) : cellOf(row[cell]))),
    )
  }
  table.end()
  if (table.count === 0) output.stderr(`no ${resource}\n`)
}

async function* once(text: string): AsyncIterable<string> {
  yield text
  await Promise.resolve()
}

function isShown(resource: string): resource is TableName {
  return Object.hasOwn(TABLES, resource)
}

function wrongResource(resource: string, rest: readonly string[]): string {
  const names = Object.keys(TABLES)
  if (resource === '') return `get needs one of ${names.join(', ')}`
  if (names.includes(resource)) return `get takes one resource, found also ${rest.join(' ')}`
  return `get: unknown resource ${JSON.stringify(resource)}, expected one of ${names.join(', ')}`
}

/** Returns the first addresses of a name, such as `198.51.100.1 (live, TTL to 12:00:00)`. */
function addresses(row: PartOf<Name>): string {
  const all = listOf(row.addresses).map(fieldsOf)
  const shown = all.slice(0, ADDRESSES_SHOWN).map((each) => {
    const time = textOf(each['expires']).slice(11, 19)
    return `${textOf(each['address'])} (${textOf(each['state'])}, TTL to ${time})`
  })
  const more = all.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

/** Returns the first owners of a prefix, such as `name www.example.com, policy prod/web`. */
function owners(row: PartOf<Prefix>): string {
  const all = listOf(row.owners).map(fieldsOf)
  const shown = all.slice(0, ADDRESSES_SHOWN).map((each) => {
    return each['kind'] === 'node' ? 'this node' : `${textOf(each['kind'])} ${textOf(each['name'])}`
  })
  const more = all.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}
