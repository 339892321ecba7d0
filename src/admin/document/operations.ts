// The table of the operations of the admin API, from which openapi.ts makes the document. routes.ts answers them; a test sends each of them
// to a daemon and compares the answers with the document.

import {
  FLOW_PARAMETERS,
  ONE,
  query,
  ROW_PARAMETERS,
  TEXT,
  WHOLE,
  type Parameter,
} from './parameters.ts'
import type { SCHEMAS } from './shapes.ts'

export type SchemaName = keyof typeof SCHEMAS

/** The body of a 200 answer: a list of objects, one object, or one object in each line. */
export type AnswerSchema =
  | { readonly list: SchemaName }
  | { readonly one: SchemaName }
  | { readonly lines: SchemaName }
  | { readonly any: 'object' }

export interface Operation {
  readonly id: string
  readonly method: 'get' | 'post' | 'put' | 'delete'
  readonly path: string
  readonly summary: string
  readonly parameters?: readonly Parameter[]
  readonly body?: SchemaName
  readonly answer: AnswerSchema
  /** Statuses of problems beside 406 and 500, which every operation has, and 400, 413 and 415, which every body has. */
  readonly problems?: readonly number[]
  /** The answer has the header ETag. A GET request with If-None-Match can get 304. */
  readonly etag?: true
}

const NAME: Parameter = { name: 'name', in: 'path', about: 'Name of the resource', schema: TEXT }

const LISTS: readonly Operation[] = [
  listed('Endpoint', 'endpoints', 'Lists the endpoints: the workloads to which policy applies'),
  listed('Policy', 'policies', 'Lists the policies, with the state of their files'),
  listed(
    'Selector',
    'selectors',
    'Lists the selectors in use, with the identities that each selects',
  ),
  filtered('Name', 'names', 'Lists the names learned from answers, by endpoint'),
  filtered('Prefix', 'ipcache', 'Lists the prefixes, with their identities, labels and owners'),
  filtered('Identity', 'identities', 'Lists the identities in use'),
  { ...listed('Resource', 'resources', 'Lists the external resources'), etag: true },
  listed(
    'Source',
    'sources',
    'Lists the sources of policies, endpoints and resources, with their ages',
  ),
  listed('Entry', 'datapath', 'Lists the entries that the datapath enforces at present'),
]

function listed(name: SchemaName, table: string, summary: string): Operation {
  const id = `list${table[0]?.toUpperCase() ?? ''}${table.slice(1)}`
  return { id, method: 'get', path: `/v1/${table}`, summary, answer: { list: name } }
}

function filtered(name: SchemaName, table: string, summary: string): Operation {
  return { ...listed(name, table, summary), parameters: ROW_PARAMETERS, problems: [400] }
}

const READS: readonly Operation[] = [
  {
    id: 'getStatus',
    method: 'get',
    path: '/v1/status',
    summary: 'Returns the state of the daemon',
    parameters: [
      query(
        'realized',
        'Wait until the datapath enforces this policy revision. `wanted`: the newest one',
        { type: 'string', pattern: '^(?:wanted|[0-9]{1,15})$' },
      ),
      query('timeout', 'Wait at most so many milliseconds. By default 60000', {
        ...WHOLE,
        maximum: 3_600_000,
      }),
    ],
    answer: { one: 'Status' },
    problems: [400],
  },
  {
    id: 'verify',
    method: 'get',
    path: '/v1/verify',
    summary: 'Lists the differences between the wanted entries and those of the datapath',
    answer: { one: 'Verify' },
  },
  {
    id: 'getFlows',
    method: 'get',
    path: '/v1/flows',
    summary:
      'Returns the latest flows, one in each line. Values of one filter are alternatives, and a flow must match every filter. A filter that can match no flow is refused',
    parameters: FLOW_PARAMETERS,
    answer: { lines: 'Flow' },
    problems: [400],
  },
  {
    id: 'getKeptFlows',
    method: 'get',
    path: '/v1/flows/kept',
    summary:
      'Returns the flows kept on disk, one in each line, in the order in which they were written. Equal flows are one line with a count and the times of the first and last, written up to an hour after the first',
    parameters: [query('older', '`1`: only those that began before the flows of /v1/flows', ONE)],
    answer: { lines: 'KeptFlow' },
    problems: [409],
  },
  {
    id: 'getTop',
    method: 'get',
    path: '/v1/top',
    summary: 'Counts recent flows by verdict, name and endpoint, and equal refusals',
    parameters: [
      query('window', 'Count the flows of this time, such as 10m. By default 60s', TEXT),
      query('rows', 'Each list has at most so many rows. By default 20', {
        ...WHOLE,
        maximum: 1000,
      }),
    ],
    answer: { one: 'Top' },
    problems: [400],
  },
  {
    id: 'getDocument',
    method: 'get',
    path: '/v1/openapi.json',
    summary: 'Returns this document',
    answer: { any: 'object' },
    etag: true,
  },
]

const CHANGES: readonly Operation[] = [
  {
    id: 'setAudit',
    method: 'post',
    path: '/v1/audit',
    summary: 'Turns audit on or off',
    body: 'Audit',
    answer: { one: 'AuditResult' },
    problems: [404],
  },
  {
    id: 'setMode',
    method: 'post',
    path: '/v1/mode',
    summary: 'Sets the mode of the datapath',
    body: 'Mode',
    answer: { one: 'ModeResult' },
  },
  {
    id: 'explain',
    method: 'post',
    path: '/v1/explain',
    summary: 'Explains why an endpoint can or cannot ask for a name, or connect',
    body: 'Question',
    answer: { one: 'Explanation' },
    problems: [404, 409],
  },
  {
    id: 'ask',
    method: 'post',
    path: '/v1/ask',
    summary: 'Sends a DNS query in the name of an endpoint, and learns addresses from its answer',
    body: 'OwnQuestion',
    answer: { one: 'OwnAnswer' },
    problems: [404, 503],
  },
  {
    id: 'placePod',
    method: 'post',
    path: '/v1/kubernetes/place',
    summary:
      'Notes where a network plugin put a pod. The response comes when the policies of the pod are in force',
    body: 'Place',
    answer: { one: 'Placed' },
    problems: [409, 503],
  },
  {
    id: 'displacePod',
    method: 'post',
    path: '/v1/kubernetes/displace',
    summary: 'Notes that a network plugin removes a pod',
    body: 'Displace',
    answer: { one: 'Displaced' },
    problems: [409],
  },
  {
    id: 'acceptRemovals',
    method: 'post',
    path: '/v1/kubernetes/accept',
    summary: 'Removes the policies that a cluster has lost and that are held in force',
    answer: { one: 'Accepted' },
    problems: [409],
  },
  {
    id: 'detach',
    method: 'post',
    path: '/v1/detach',
    summary: 'Removes all enforcement and ends the daemon',
    parameters: [
      query(
        'interception',
        '`1`: also remove the rules of interception, while the daemon still answers queries',
        ONE,
      ),
    ],
    answer: { one: 'Detached' },
    problems: [400, 409],
  },
]

const CONDITIONS: readonly Parameter[] = [
  {
    name: 'If-Match',
    in: 'header',
    about: 'Change only this version, which an ETag names. `*`: change only what exists',
    schema: TEXT,
  },
  {
    name: 'If-None-Match',
    in: 'header',
    about: '`*`: change nothing that exists',
    schema: TEXT,
  },
]

const RESOURCE: readonly Operation[] = [
  {
    id: 'getResource',
    method: 'get',
    path: '/v1/resources/{name}',
    summary: 'Returns an external resource',
    parameters: [NAME],
    answer: { one: 'Resource' },
    problems: [400, 404],
    etag: true,
  },
  {
    id: 'setResource',
    method: 'put',
    path: '/v1/resources/{name}',
    summary:
      'Adds or changes an external resource. The response comes when the resource is in force and saved',
    parameters: [NAME, ...CONDITIONS],
    body: 'ResourceBody',
    answer: { one: 'ResourceChange' },
    problems: [409, 412, 503],
    etag: true,
  },
  {
    id: 'removeResource',
    method: 'delete',
    path: '/v1/resources/{name}',
    summary: 'Removes an external resource',
    parameters: [NAME, ...CONDITIONS.slice(0, 1)],
    answer: { one: 'ResourceChange' },
    problems: [400, 404, 409, 412, 503],
  },
]

export const OPERATIONS: readonly Operation[] = [...LISTS, ...READS, ...CHANGES, ...RESOURCE]
