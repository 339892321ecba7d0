// Makes the answer of each path of the admin API, as a value. server.ts writes the answer.

import type { IncomingMessage } from 'node:http'
import { askBody } from './ask.ts'
import { auditBody } from './audit.ts'
import { explainBody } from './explain.ts'
import { acceptRemovals, displacePod, placePod } from './kubernetes.ts'
import { openApi } from './document/openapi.ts'
import { parseMode, readJson, type BadRequest } from './requests.ts'
import { answerResource, RESOURCE_PATH } from './resources.ts'
import { readFlowQuery } from './flows/flow-query.ts'
import { keptLines, type FlowQuery } from './flows/flow-stream.ts'
import { accepts, JSON_TYPE, LINES_TYPE } from './negotiation.ts'
import type { Problem, ProblemKind } from './problems.ts'
import { readRowFilter, type RowFilter } from './row-filter.ts'
import type { AdminState } from './state.ts'
import { readTopQuery } from './top-query.ts'
import { datapathRows } from './views/datapath.ts'
import { endpointRows, resourceRows } from './views/endpoints.ts'
import { identityRows, ipcacheRows } from './views/ipcache.ts'
import { nameRows } from './views/names.ts'
import { policyRows } from './views/policies.ts'
import type { Rows } from './views/rows.ts'
import { selectorRows } from './views/selectors.ts'
import { sourceRows } from './views/sources.ts'
import { statusView } from './views/status.ts'
import { topView } from './views/top.ts'
import { differenceRows } from './views/verify.ts'
import { waitRealized } from './wait.ts'

export type Answer =
  /** A list, which is streamed. `etag`: the version of the answer, if it has one. */
  | { readonly kind: 'rows'; readonly rows: Rows<object>; readonly etag?: string | undefined }
  /** One object, whose field `name` is a short list that takes long to make. */
  | { readonly kind: 'gathered'; readonly name: string; readonly rows: Rows<object> }
  | { readonly kind: 'object'; readonly value: object; readonly etag?: string | undefined }
  | { readonly kind: 'flows'; readonly query: FlowQuery }
  /** JSON lines, unchanged from disk. */
  | { readonly kind: 'lines'; readonly lines: AsyncIterable<string> }
  /** `allow`: the methods of the path, for a request with another method. */
  | ProblemAnswer

interface ProblemAnswer {
  readonly kind: 'problem'
  readonly problem: Problem
  readonly allow?: string
}

type Handler = (
  state: AdminState,
  query: URLSearchParams,
  request: IncomingMessage,
) => Answer | Promise<Answer>

const GET: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['/v1/endpoints', (state) => rows(endpointRows(state))],
  ['/v1/policies', (state) => rows(policyRows(state))],
  ['/v1/selectors', (state) => rows(selectorRows(state))],
  ['/v1/names', (state, query) => filtered(state, query, nameRows)],
  ['/v1/ipcache', (state, query) => filtered(state, query, ipcacheRows)],
  ['/v1/identities', (state, query) => filtered(state, query, identityRows)],
  ['/v1/resources', (state) => ({ ...rows(resourceRows(state)), etag: state.resourceTag() })],
  ['/v1/sources', (state) => rows(sourceRows(state))],
  ['/v1/datapath', (state) => rows(datapathRows(state))],
  ['/v1/status', (state, query) => status(state, query)],
  [
    '/v1/verify',
    (state) => ({ kind: 'gathered', name: 'differences', rows: differenceRows(state) }),
  ],
  ['/v1/flows', (state, query) => flows(state, query)],
  ['/v1/flows/kept', (state, query) => keptFlows(state, query)],
  ['/v1/top', (state, query) => top(state, query)],
  ['/v1/openapi.json', (state) => document(state)],
])

const POST: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['/v1/audit', (state, _query, request) => withBody(state, request, auditBody)],
  ['/v1/mode', (state, _query, request) => setMode(state, request)],
  ['/v1/explain', (state, _query, request) => explainOne(state, request)],
  ['/v1/ask', (state, _query, request) => askOne(state, request)],
  ['/v1/kubernetes/place', (state, _query, request) => withBody(state, request, placePod)],
  ['/v1/kubernetes/displace', (state, _query, request) => withBody(state, request, displacePod)],
  ['/v1/kubernetes/accept', (state) => answerOf(acceptRemovals(state))],
  ['/v1/detach', (state, query) => detach(state, query)],
])

/** Requests name only a path. The host is the same for all. */
const BASE = 'http://admin'
/** Paths whose answers are JSON lines. */
const LINES: ReadonlySet<string> = new Set(['/v1/flows', '/v1/flows/kept'])

/** Returns the answer to a request. An unknown path or method is answered with a problem. */
export async function route(state: AdminState, request: IncomingMessage): Promise<Answer> {
  const { url = '/', method = '' } = request
  if (!URL.canParse(url, BASE)) return failure('invalid-request', `path: found ${url}`)
  const { pathname, searchParams } = new URL(url, BASE)
  const methods = methodsOf(pathname)
  if (methods.length === 0) {
    return failure('unknown-path', `no such path: ${pathname}; /v1/openapi.json lists all`)
  }
  if (!methods.includes(method)) {
    const allow = methods.join(', ')
    return {
      ...failure('method-not-allowed', `${pathname} takes ${allow}, found ${method}`),
      allow,
    }
  }
  const type = LINES.has(pathname) ? LINES_TYPE : JSON_TYPE
  const { accept } = request.headers
  if (!accepts(accept, type)) {
    return failure('not-acceptable', `accept: found ${accept ?? ''}, expected ${type}`)
  }
  if (pathname.startsWith(RESOURCE_PATH)) return await resource(state, pathname, request)
  const handler = (method === 'POST' ? POST : GET).get(pathname)
  return handler === undefined
    ? failure('unknown-path', pathname)
    : await handler(state, searchParams, request)
}

function methodsOf(pathname: string): readonly string[] {
  if (pathname.startsWith(RESOURCE_PATH)) return ['GET', 'PUT', 'DELETE']
  return [...(GET.has(pathname) ? ['GET'] : []), ...(POST.has(pathname) ? ['POST'] : [])]
}

async function resource(
  state: AdminState,
  pathname: string,
  request: IncomingMessage,
): Promise<Answer> {
  const answer = await answerResource(state, pathname.slice(RESOURCE_PATH.length), request)
  return answer.kind === 'ok'
    ? { kind: 'object', value: answer.value, etag: answer.etag }
    : { kind: 'problem', problem: answer.problem }
}

async function setMode(state: AdminState, request: IncomingMessage): Promise<Answer> {
  const body = await readJson(request)
  const mode = body.kind === 'ok' ? parseMode(body.value) : body
  if (mode.kind === 'bad') return badRequest(mode)
  state.setMode(mode.value)
  return object({ mode: state.mode() })
}

type BodyAnswer =
  | { readonly kind: 'ok'; readonly value: object }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** Answers a request by its JSON. */
async function withBody(
  state: AdminState,
  request: IncomingMessage,
  answer: (state: AdminState, body: unknown) => BodyAnswer | Promise<BodyAnswer>,
): Promise<Answer> {
  const body = await readJson(request)
  return body.kind === 'bad' ? badRequest(body) : answerOf(await answer(state, body.value))
}

function answerOf(answer: BodyAnswer): Answer {
  return answer.kind === 'ok' ? object(answer.value) : answer
}

async function status(state: AdminState, query: URLSearchParams): Promise<Answer> {
  if (!query.has('realized')) return object(statusView(state))
  const answer = await waitRealized(state, query)
  return answer.kind === 'ok' ? object(answer.value) : failure('invalid-request', answer.reason)
}

async function explainOne(state: AdminState, request: IncomingMessage): Promise<Answer> {
  const body = await readJson(request)
  if (body.kind === 'bad') return badRequest(body)
  const answer = explainBody(state, body.value)
  return answer.kind === 'ok' ? object(answer.value) : failure(KINDS[answer.status], answer.reason)
}

async function askOne(state: AdminState, request: IncomingMessage): Promise<Answer> {
  const body = await readJson(request)
  if (body.kind === 'bad') return badRequest(body)
  const answer = await askBody(state, body.value)
  return answer.kind === 'ok' ? object(answer.value) : failure(KINDS[answer.status], answer.reason)
}

function detach(state: AdminState, query: URLSearchParams): Answer {
  const interception = query.get('interception')
  if (interception !== null && interception !== '1') {
    return failure('invalid-request', `interception: must be 1, found ${interception}`)
  }
  if (state.detach === undefined) {
    return failure(
      'conflict',
      `datapath ${state.core.datapath.kind} has nothing outside of the daemon`,
    )
  }
  state.detach(interception === '1')
  return object({ detached: true })
}

function flows(state: AdminState, query: URLSearchParams): Answer {
  const read = readFlowQuery(state, query)
  return read.kind === 'ok' ? { kind: 'flows', query: read.value } : badRequest(read)
}

async function top(state: AdminState, query: URLSearchParams): Promise<Answer> {
  const read = readTopQuery(query)
  return read.kind === 'ok' ? object(await topView(state, read.value)) : badRequest(read)
}

function keptFlows(state: AdminState, query: URLSearchParams): Answer {
  const older = query.get('older') === '1'
  return state.keptFlows === undefined && !older
    ? failure('conflict', 'flows are not kept on disk here: flows.output has no file')
    : { kind: 'lines', lines: keptLines(state, older) }
}

/** The document of this process. */
function document({ startedAt, version }: AdminState): Answer {
  const etag = `"${Math.round(startedAt).toString(36)}-${version}"`
  return { kind: 'object', value: openApi(version), etag }
}

function filtered(
  state: AdminState,
  query: URLSearchParams,
  list: (state: AdminState, filter: RowFilter) => Rows<object>,
): Answer {
  const read = readRowFilter(state, query)
  return read.kind === 'ok' ? rows(list(state, read.value)) : badRequest(read)
}

function rows(list: Rows<object>): Extract<Answer, { readonly kind: 'rows' }> {
  return { kind: 'rows', rows: list }
}

function object(value: object): Answer {
  return { kind: 'object', value }
}

/** The problems of requests about an endpoint, by their status. */
const KINDS = {
  400: 'invalid-request',
  404: 'unknown-endpoint',
  409: 'conflict',
  503: 'unavailable',
} as const

function badRequest({ problem, reason }: BadRequest): ProblemAnswer {
  return failure(problem ?? 'invalid-request', reason)
}

function failure(kind: ProblemKind, detail: string): ProblemAnswer {
  return { kind: 'problem', problem: { kind, detail } }
}
