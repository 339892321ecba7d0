// `namegate get RESOURCE`: what a running daemon knows, as a table or as the JSON that it answers.

import { nearest } from '../../core/did-you-mean.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { fieldsOf, listOf, rowsIn, textOf, type Fields } from '../fields.ts'
import { TableWriter } from '../table.ts'

type Column = readonly [title: string, cell: (row: Fields) => string]

/** Addresses of a name that a table shows. */
const ADDRESSES_SHOWN = 4

const TABLES: Readonly<Record<string, readonly Column[]>> = {
  endpoints: [
    ['ID', field('id')],
    ['NAME', field('name')],
    ['ADDRESSES', field('addresses')],
    ['ENFORCING', yesNo('enforcing')],
    ['AUDIT', yesNo('audit')],
    ['REVISION', (row) => `${textOf(row['realizedRevision'])}/${textOf(row['policyRevision'])}`],
    ['POLICIES', field('policies')],
    ['LABELS', field('labels')],
    ['REASON', field('reason')],
  ],
  policies: [
    ['NAMESPACE', field('namespace')],
    ['NAME', field('name')],
    ['STATE', field('state')],
    ['ENDPOINTS', field('endpoints')],
    ['SELECTORS', field('selectors')],
    ['UNSEEN', field('unseen')],
    ['FILE', field('file')],
    ['ERROR', (row) => textOf(row['error']).replaceAll('\n', '; ')],
  ],
  selectors: [
    ['SELECTOR', field('selector')],
    ['KIND', field('kind')],
    ['NAMES', field('names')],
    ['SEEN', (row) => (row['seen'] === null ? '-' : yesNo('seen')(row))],
    ['IDENTITIES', field('identities')],
    ['POLICIES', field('policies')],
  ],
  names: [
    ['NAME', field('name')],
    ['ENDPOINT', field('endpoint')],
    ['ADDRESSES', addresses],
    ['SELECTORS', field('selectors')],
  ],
  ipcache: [
    ['PREFIX', field('prefix')],
    ['IDENTITY', field('identity')],
    ['ENDPOINT', field('endpoint')],
    ['LABELS', field('labels')],
    ['OWNERS', owners],
  ],
  identities: [
    ['ID', field('id')],
    ['REFERENCES', field('references')],
    ['PREALLOCATED', yesNo('preallocated')],
    ['LABELS', field('labels')],
  ],
  resources: [
    ['NAME', field('name')],
    ['ORIGIN', field('origin')],
    ['EXPIRES', field('expires')],
    ['ADDRESSES', field('addresses')],
    ['LABELS', field('labels')],
  ],
  datapath: [
    ['MAP', field('map')],
    ['KEY', field('key')],
    ['VALUE', field('value')],
  ],
}

export async function runGet(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [resource = '', ...rest] = read.positionals
  const columns = TABLES[resource]
  if (columns === undefined || rest.length > 0) {
    return read.wrong(wrongResource(resource, rest))
  }
  const parts = await (await openClient(read)).open(`/v1/${resource}`)
  if (read.texts.has('output')) {
    for await (const part of parts) output.stdout(part)
    return EXIT_OK
  }
  const table = new TableWriter(
    output,
    columns.map(([title]) => title),
  )
  for await (const row of rowsIn(parts)) table.add(columns.map(([, cell]) => cell(row)))
  table.end()
  if (table.count === 0) output.stderr(`no ${resource}\n`)
  return EXIT_OK
}

function wrongResource(resource: string, rest: readonly string[]): string {
  const names = Object.keys(TABLES)
  if (resource === '') return `get needs one of ${names.join(', ')}`
  if (names.includes(resource)) return `get takes one resource, found also ${rest.join(' ')}`
  const meant = nearest(resource, names)
  const hint =
    meant === undefined ? `expected one of ${names.join(', ')}` : `did you mean ${meant}?`
  return `get: unknown resource ${JSON.stringify(resource)}; ${hint}`
}

function field(name: string): (row: Fields) => string {
  return (row) => textOf(row[name])
}

function yesNo(name: string): (row: Fields) => string {
  return (row) => (row[name] === true ? 'yes' : 'no')
}

/** `198.51.100.1 (live to 12:00:00)`, the first few. */
function addresses(row: Fields): string {
  const all = listOf(row['addresses']).map(fieldsOf)
  const shown = all.slice(0, ADDRESSES_SHOWN).map((each) => {
    const time = textOf(each['expires']).slice(11, 19)
    return `${textOf(each['address'])} (${textOf(each['state'])}, TTL to ${time})`
  })
  const more = all.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

/** `name www.example.com, policy prod/web` */
function owners(row: Fields): string {
  const all = listOf(row['owners']).map(fieldsOf)
  const shown = all.slice(0, ADDRESSES_SHOWN).map((each) => {
    return `${textOf(each['kind'])} ${textOf(each['name'])}`
  })
  const more = all.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}
