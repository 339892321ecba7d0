// Answers the requests of the web page: its files, the live lines, searches, lists, and explanations. The only request that
// changes something turns audit of an endpoint on or off, and only a caller with `mayWrite` allows it. The admin socket and the
// page's own TCP server share one Page, so the bounds hold for both together.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdminState } from '../state.ts'
import { auditBody } from '../audit.ts'
import { explainBody } from '../explain.ts'
import { writeRows } from '../json-stream.ts'
import { PROBLEMS } from '../problems.ts'
import { fieldsOf, readJson } from '../requests.ts'
import { endpointRows } from '../views/endpoints.ts'
import { policyRows } from '../views/policies.ts'
import type { PageCounts } from './counts.ts'
import { explore, SEARCH_MAX } from './explore.ts'
import { PageFiles, type PageFile } from './files.ts'
import { HEADERS } from './headers.ts'
import { Live } from './live.ts'
import { sendSignIn, type SignInReason } from './sign-in.ts'

const SEARCHES_MAX = 4

export class Page {
  readonly counts: PageCounts
  readonly #state: AdminState
  readonly #files = new PageFiles()
  readonly #live: Live
  #searches = 0

  constructor(state: AdminState, counts: PageCounts) {
    this.counts = counts
    this.#state = state
    this.#live = new Live(state, counts)
  }

  /**
   * Answers a request of the page. Returns false, and writes nothing, for the path of another part. With `mayWrite` the page can change
   * endpoints.
   */
  async answer(
    request: IncomingMessage,
    response: ServerResponse,
    mayWrite = false,
  ): Promise<boolean> {
    const { pathname, searchParams } = partsOf(request)
    if (pathname !== '/' && !pathname.startsWith('/page/')) return false
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
    const { method } = request
    if (pathname === '/page/explain' || pathname === '/page/audit') {
      if (method !== 'POST') refuse(response, 405, `${pathname} takes POST`)
      else if (pathname === '/page/explain') await this.#explain(request, response)
      else if (mayWrite) await this.#audit(request, response)
      else refuse(response, 403, 'the page only reads: see admin.page.write')
    } else if (pathname === '/page/rights' && method === 'GET') {
      json(response, 200)
      response.end(`${JSON.stringify({ write: mayWrite })}\n`)
    } else if (method !== 'GET' && method !== 'HEAD') {
      refuse(response, 405, `${pathname} takes GET`)
    } else if (!(await this.#read(pathname, searchParams, request, response))) {
      refuse(response, 404, `no such path: ${pathname}`)
    }
    return true
  }

  async signIn(response: ServerResponse, reason: SignInReason): Promise<void> {
    await sendSignIn(this.#files, response, reason)
  }

  stop(): void {
    this.#live.stop()
  }

  async #read(
    path: string,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<boolean> {
    switch (path) {
      case '/page/live':
        this.#watch(request, response)
        return true
      case '/page/explore':
        await this.#search(query.get('text') ?? '', response)
        return true
      case '/page/endpoints':
        json(response, 200)
        await writeRows(response, this.#state.clock, endpointRows(this.#state))
        response.end()
        return true
      case '/page/policies':
        json(response, 200)
        await writeRows(response, this.#state.clock, policyRows(this.#state))
        response.end()
        return true
      default: {
        const file = await this.#files.get(path)
        if (file !== undefined) sendFile(file, request, response)
        return file !== undefined
      }
    }
  }

  #watch(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === 'HEAD') return refuse(response, 405, '/page/live takes GET')
    // The headers go out before the first line, so that a browser knows that it is connected.
    response.setHeader('content-type', 'application/x-ndjson')
    response.setHeader('cache-control', 'no-store')
    if (this.#live.add(response)) return response.flushHeaders()
    this.counts.refused.busy++
    refuse(response, 503, 'too many viewers')
  }

  async #search(text: string, response: ServerResponse): Promise<void> {
    if (text.trim() === '' || text.length > SEARCH_MAX) {
      return refuse(response, 400, `text: expected 1 to ${SEARCH_MAX} characters`)
    }
    if (this.#searches >= SEARCHES_MAX) {
      this.counts.refused.busy++
      return refuse(response, 503, 'too many searches at once, try again')
    }
    this.#searches++
    try {
      const found = await explore(this.#state, text, () => !response.destroyed)
      json(response, 200)
      response.end(`${JSON.stringify(found)}\n`)
    } finally {
      this.#searches--
    }
  }

  /** Turns audit of one endpoint on, or takes back what was set at run time. */
  async #audit(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readJson(request)
    if (body.kind === 'bad') return refuse(response, 400, body.reason)
    const fields = fieldsOf(body.value, ['endpoint', 'on'])
    if (fields === undefined)
      return refuse(response, 400, 'expected {"endpoint": NAME, "on": true}')
    const [name, on] = [fields.get('endpoint'), fields.get('on')]
    const answer = await auditBody(this.#state, { scope: 'endpoint', name, on })
    if (answer.kind === 'problem') {
      const { kind, detail } = answer.problem
      return refuse(response, PROBLEMS[kind].status, detail)
    }
    json(response, 200)
    response.end(`${JSON.stringify(answer.value)}\n`)
  }

  async #explain(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readJson(request)
    if (body.kind === 'bad') return refuse(response, 400, body.reason)
    const found = explainBody(this.#state, body.value)
    if (found.kind !== 'ok') return refuse(response, found.status, found.reason)
    json(response, 200)
    response.end(`${JSON.stringify(found.value)}\n`)
  }
}

/** The path and the query of a request. They are not decoded further, because no path of the page needs that. */
export function partsOf({ url = '/' }: Pick<IncomingMessage, 'url'>): {
  readonly pathname: string
  readonly searchParams: URLSearchParams
} {
  const end = url.includes('?') ? url.indexOf('?') : url.length
  return { pathname: url.slice(0, end), searchParams: new URLSearchParams(url.slice(end)) }
}

function sendFile(file: PageFile, { headers, method }: IncomingMessage, to: ServerResponse): void {
  const { type, etag, plain, gzipped } = file
  to.setHeader('etag', etag)
  to.setHeader('cache-control', 'no-cache')
  to.setHeader('vary', 'accept-encoding')
  if (headers['if-none-match'] === etag) {
    to.writeHead(304)
    to.end()
    return
  }
  const zips = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))
  const octets = zips ? gzipped : plain
  if (zips) to.setHeader('content-encoding', 'gzip')
  to.writeHead(200, { 'content-type': type, 'content-length': octets.length })
  to.end(method === 'HEAD' ? undefined : octets)
}

function json(response: ServerResponse, status: number): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  })
}

function refuse(response: ServerResponse, status: number, error: string): void {
  json(response, status)
  response.end(`${JSON.stringify({ error })}\n`)
}
