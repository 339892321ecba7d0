// Serves the admin API over HTTP on a UNIX socket: the state of the daemon, flows, and the settings that can change at run time. No request
// blocks the event loop (json-stream.ts), and a failure ends only the request that failed. A socket file that was removed is made again.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { writeFlows } from './flow-stream.ts'
import { SliceWriter, writeRows } from './json-stream.ts'
import { listenOnSocket } from './listen.ts'
import { route, type Answer } from './routes.ts'
import { StandingSocket, type OnRemoved } from './standing-socket.ts'
import type { AdminState } from './state.ts'

const CONNECTIONS_MAX = 64
const JSON_TYPE = 'application/json; charset=utf-8'

export interface AdminServerOptions {
  readonly state: AdminState
  readonly socket: string
  /** Receives an error of the program in answering a request. The daemon continues. */
  readonly onError: (error: unknown) => void
  readonly onRemoved?: OnRemoved
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
    const { state, onError } = this.#options
    response.on('error', () => undefined)
    try {
      await write(state, await route(state, request), response)
      response.end()
    } catch (error) {
      onError(error)
      if (!response.headersSent) {
        response.writeHead(500, { 'content-type': JSON_TYPE })
        response.end('{"error":"internal error, see the log"}\n')
      } else {
        // The answer is incomplete. Closing the connection tells the client so.
        response.destroy()
      }
    }
  }
}

async function write(state: AdminState, answer: Answer, response: ServerResponse): Promise<void> {
  const status = answer.kind === 'error' ? answer.status : 200
  const isLines = answer.kind === 'flows' || answer.kind === 'lines'
  const type = isLines ? 'application/x-ndjson' : JSON_TYPE
  switch (answer.kind) {
    case 'rows':
      response.writeHead(status, { 'content-type': type })
      return await writeRows(response, state.clock, answer.rows)
    case 'gathered': {
      const list: object[] = []
      const writer = new SliceWriter(response, state.clock)
      for (const row of answer.rows) {
        if (row !== undefined) list.push(row)
        await writer.breathe()
      }
      response.writeHead(status, { 'content-type': type })
      response.write(`${JSON.stringify({ [answer.name]: list })}\n`)
      return
    }
    case 'object':
      response.writeHead(status, { 'content-type': type })
      response.write(`${JSON.stringify(answer.value)}\n`)
      return
    case 'flows':
      response.writeHead(status, { 'content-type': type })
      response.flushHeaders()
      return await writeFlows(response, state, answer.query)
    case 'lines': {
      response.writeHead(status, { 'content-type': type })
      const writer = new SliceWriter(response, state.clock)
      for await (const lines of answer.lines) {
        if (!writer.open) return
        writer.add(lines)
        await writer.flush()
      }
      return
    }
    case 'error':
      response.writeHead(status, { 'content-type': type })
      response.write(`${JSON.stringify({ error: answer.error })}\n`)
  }
}
