// Serves the admin API over HTTP on a UNIX socket: the state of the daemon, flows, and the settings that can change at run time. No request
// blocks the event loop (json-stream.ts), and a failure ends only the request that failed. A socket file that was removed is made again.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { writeFlows } from './flows/flow-stream.ts'
import { SliceWriter, writeRows } from './json-stream.ts'
import { listenOnSocket } from './listen.ts'
import { JSON_TYPE, LINES_TYPE } from './negotiation.ts'
import { isKnown } from './preconditions.ts'
import { problemBody, PROBLEM_TYPE, PROBLEMS, type Problem } from './problems.ts'
import { foreignStatus, isFromBrowser, isLocalName } from './page/foreign.ts'
import type { Page } from './page/page.ts'
import { route, type Answer } from './routes.ts'
import { StandingSocket, type OnRemoved } from './standing-socket.ts'
import type { AdminState } from './state.ts'

const CONNECTIONS_MAX = 64
const JSON_HEADER = `${JSON_TYPE}; charset=utf-8`

export interface AdminServerOptions {
  readonly state: AdminState
  readonly socket: string
  /** Receives an error of the program in answering a request. The daemon continues. */
  readonly onError: (error: unknown) => void
  readonly onRemoved?: OnRemoved
  /** Undefined: this server has no web page. */
  readonly page?: Page | undefined
}

export class AdminServer {
  readonly #options: AdminServerOptions
  readonly #server: Server
  #standing: StandingSocket | undefined

  constructor(options: AdminServerOptions) {
    this.#options = options
    this.#server = createServer((request, response) => void this.#answer(request, response))
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Listens. Rejects with UnavailableError that names the remedy. */
  async start(): Promise<void> {
    const { state, socket, onRemoved } = this.#options
    await listenOnSocket(this.#server, socket)
    const { clock } = state
    const renew = async (): Promise<void> => await this.#renew()
    this.#standing = new StandingSocket({ path: socket, clock, renew, onRemoved })
  }

  /** Ends all requests and removes the socket. */
  async stop(): Promise<void> {
    await this.#standing?.stop()
    if (!this.#server.listening) return
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  /** Makes the socket again. Requests that are under way continue. */
  async #renew(): Promise<void> {
    if (this.#server.listening) this.#server.close()
    await listenOnSocket(this.#server, this.#options.socket)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { state, onError, page } = this.#options
    response.on('error', () => undefined)
    try {
      const foreign = problemForBrowser(request)
      if (foreign !== undefined) {
        if (page !== undefined) page.counts.refused.origin++
        writeProblem({ problem: foreign }, request, response)
        response.end()
        return
      }
      if ((await page?.answer(request, response)) === true) return
      const answer = await route(state, request)
      const etag = 'etag' in answer ? answer.etag : undefined
      if (etag !== undefined) response.setHeader('etag', etag)
      if (answer.kind === 'problem') writeProblem(answer, request, response)
      else if (request.method === 'GET' && etag !== undefined && isKnown(request.headers, etag))
        response.writeHead(304)
      else await write(state, answer, response)
      response.end()
    } catch (error) {
      onError(error)
      if (!response.headersSent) {
        const problem = { kind: 'internal-error', detail: 'internal error, see the log' } as const
        writeProblem({ problem }, request, response)
        response.end()
      } else {
        // The answer is incomplete. Closing the connection tells the client so.
        response.destroy()
      }
    }
  }
}

/**
 * The refusal for a browser that reaches the socket, for example through `ssh -L`. A page of another site must not read the
 * daemon's state, and no page changes it.
 */
function problemForBrowser(request: IncomingMessage): Problem | undefined {
  const foreign = foreignStatus(request, { scheme: 'http', isOwnName: isLocalName })
  if (foreign === 421) {
    return {
      kind: 'foreign-host',
      detail: `host ${request.headers.host ?? ''}: expected localhost`,
    }
  }
  if (foreign === 403) return { kind: 'foreign-origin', detail: 'another site sent the request' }
  const changes = request.method !== 'GET' && request.url !== '/page/explain'
  return changes && isFromBrowser(request)
    ? { kind: 'foreign-origin', detail: 'a browser can change nothing' }
    : undefined
}

function writeProblem(
  { problem, allow }: { readonly problem: Problem; readonly allow?: string },
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const allowed = allow === undefined ? {} : { allow }
  const { status } = PROBLEMS[problem.kind]
  response.writeHead(status, { 'content-type': PROBLEM_TYPE, ...allowed })
  response.write(`${JSON.stringify(problemBody(problem, request.url ?? '/'))}\n`)
}

async function write(
  state: AdminState,
  answer: Exclude<Answer, { readonly kind: 'problem' }>,
  response: ServerResponse,
): Promise<void> {
  const isLines = answer.kind === 'flows' || answer.kind === 'lines'
  const head = { 'content-type': isLines ? LINES_TYPE : JSON_HEADER }
  switch (answer.kind) {
    case 'rows':
      response.writeHead(200, head)
      return await writeRows(response, state.clock, answer.rows)
    case 'gathered': {
      const list: object[] = []
      const writer = new SliceWriter(response, state.clock)
      for (const row of answer.rows) {
        if (row !== undefined) list.push(row)
        await writer.breathe()
      }
      response.writeHead(200, head)
      response.write(`${JSON.stringify({ [answer.name]: list })}\n`)
      return
    }
    case 'object':
      response.writeHead(200, head)
      response.write(`${JSON.stringify(answer.value)}\n`)
      return
    case 'flows':
      response.writeHead(200, head)
      response.flushHeaders()
      return await writeFlows(response, state, answer.query)
    case 'lines': {
      response.writeHead(200, head)
      const writer = new SliceWriter(response, state.clock)
      for await (const lines of answer.lines) {
        if (!writer.open) return
        writer.add(lines)
        await writer.flush()
      }
    }
  }
}
