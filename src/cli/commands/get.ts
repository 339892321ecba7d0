// `runGet` runs `namegate get TABLE`. The command prints a table of a running daemon, as columns or as the JSON of the daemon.

import { nearest } from '../../core/did-you-mean.ts'
import type {
  DatapathShape,
  EndpointShape,
  IdentityShape,
  IpcacheShape,
  NameShape,
  PolicyShape,
  ResourceShape,
  SelectorShape,
} from '../../admin/shapes.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { cellOf, fieldsOf, listOf, rowsIn, textOf, type Fields, type PartOf } from '../fields.ts'
import { TableWriter } from '../table.ts'

/** The tables of `get`, and the shape of a line in each. */
interface Shapes {
  readonly endpoints: EndpointShape
  readonly policies: PolicyShape
  readonly selectors: SelectorShape
  readonly names: NameShape
  readonly ipcache: IpcacheShape
  readonly identities: IdentityShape
  readonly resources: ResourceShape
  readonly datapath: DatapathShape
}

/** One column. Its cell is one field of a line, or a text that a function makes from several fields. */
type Column<Shape> = readonly [title: string, cell: keyof Shape | ((row: PartOf<Shape>) => string)]

/** How many addresses, or owners, a cell shows at most. */
const ADDRESSES_SHOWN = 4

const TABLES: { readonly [Name in keyof Shapes]: readonly Column<Shapes[Name]>[] } = {
  endpoints: [
    ['ID', 'id'],
    ['NAME', 'name'],
    ['ADDRESSES', 'addresses'],
    ['ENFORCING', 'enforcing'],
    ['AUDIT', 'audit'],
    ['REVISION', (row) => `${textOf(row.realizedRevision)}/${textOf(row.policyRevision)}`],
    ['POLICIES', 'policies'],
    ['LABELS', 'labels'],
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
    ['ENDPOINT', 'endpoint'],
    ['LABELS', 'labels'],
    ['OWNERS', owners],
  ],
  identities: [
    ['ID', 'id'],
    ['REFERENCES', 'references'],
    ['PREALLOCATED', 'preallocated'],
    ['LABELS', 'labels'],
  ],
  resources: [
    ['NAME', 'name'],
    ['ORIGIN', 'origin'],
    ['EXPIRES', 'expires'],
    ['ADDRESSES', 'addresses'],
    ['LABELS', 'labels'],
  ],
  datapath: [
    ['MAP', 'map'],
    ['KEY', 'key'],
    ['VALUE', 'value'],
  ],
}

export async function runGet(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [resource = '', ...rest] = read.positionals
  if (!isShown(resource) || rest.length > 0) {
    return read.wrong(wrongResource(resource, rest))
  }
  const parts = await (await openClient(read)).open(`/v1/${resource}`)
  if (read.texts.has('output')) {
    for await (const part of parts) output.stdout(part)
    return EXIT_OK
  }
  const columns: readonly Column<Fields>[] = TABLES[resource]
  const table = new TableWriter(
    output,
    columns.map(([title]) => title),
  )
  for await (const row of rowsIn(parts)) {
    table.add(
      columns.map(([, cell]) => (typeof cell === 'function' ? cell(row) : cellOf(row[cell]))),
    )
  }
  table.end()
  if (table.count === 0) output.stderr(`no ${resource}\n`)
  return EXIT_OK
}

function isShown(resource: string): resource is keyof Shapes {
  return Object.hasOwn(TABLES, resource)
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

/** Returns the first addresses of a name, such as `198.51.100.1 (live, TTL to 12:00:00)`. */
function addresses(row: PartOf<NameShape>): string {
  const all = listOf(row.addresses).map(fieldsOf)
  const shown = all.slice(0, ADDRESSES_SHOWN).map((each) => {
    const time = textOf(each['expires']).slice(11, 19)
    return `${textOf(each['address'])} (${textOf(each['state'])}, TTL to ${time})`
  })
  const more = all.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

/** Returns the first owners of a prefix, such as `name www.example.com, policy prod/web`. */
function owners(row: PartOf<IpcacheShape>): string {
  const all = listOf(row.owners).map(fieldsOf)
  const shown = all.slice(0, ADDRESSES_SHOWN).map((each) => {
    return `${textOf(each['kind'])} ${textOf(each['name'])}`
  })
  const more = all.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}
