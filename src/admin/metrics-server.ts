// Serves `/metrics`, `/healthz` and `/readyz` over TCP, for observers outside of the node. The server changes nothing. It shows no learned
// name, no client address and no policy. It shows the faults of files, because an operator has to repair these files.

import { createServer, type Server, type ServerResponse } from 'node:http'
import { METRICS_TYPE } from '../telemetry/metrics.ts'
import { listenOnPort } from './listen.ts'
import type { AdminState } from './state.ts'
import { faultsOf } from './views/status.ts'

const CONNECTIONS_MAX = 64
const REQUEST_MS = 10_000
const TEXT_TYPE = 'text/plain; charset=utf-8'

export interface MetricsServerOptions {
  readonly state: Pick<AdminState, 'metrics' | 'notReady' | 'policyFiles' | 'faults'>
  readonly address: string
  readonly port: number
  readonly onError: (error: unknown) => void
}

export class MetricsServer {
  readonly #options: MetricsServerOptions
  readonly #server: Server
  #port: number

  constructor(options: MetricsServerOptions) {
    this.#options = options
    this.#port = options.port
    this.#server = createServer((request, response) => {
      response.on('error', () => undefined)
      void this.#answer(request.method, request.url ?? '/', response)
    })
    this.#server.maxConnections = CONNECTIONS_MAX
    this.#server.requestTimeout = REQUEST_MS
  }

  /** The port on which the server listens. Valid after `start`. */
  get port(): number {
    return this.#port
  }

  /** Listens. Rejects with UnavailableError that names the remedy. */
  async start(): Promise<void> {
    this.#port = await listenOnPort(this.#server, this.#options.address, this.#port)
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  async #answer(method: string | undefined, url: string, response: ServerResponse): Promise<void> {
    try {
      if (method !== 'GET' && method !== 'HEAD') return end(response, 405, 'expected GET\n')
      const [path = ''] = url.split('?')
      if (path === '/metrics') {
        return end(response, 200, await this.#options.state.metrics(), METRICS_TYPE)
      }
      if (path === '/healthz') return end(response, 200, 'ok\n')
      if (path === '/readyz') return this.#ready(response)
      return end(response, 404, 'expected /metrics, /healthz or /readyz\n')
    } catch (error) {
      this.#options.onError(error)
      end(response, 500, 'internal error, see the log\n')
    }
  }

  #ready(response: ServerResponse): void {
    const { state } = this.#options
    const reasons = state.notReady()
    const faults = faultsOf(state).map(
      ({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`,
    )
    const head = reasons.length === 0 ? ['ready'] : reasons.map((reason) => `not ready: ${reason}`)
    end(response, reasons.length === 0 ? 200 : 503, `${[...head, ...faults].join('\n')}\n`)
  }
}

function end(response: ServerResponse, status: number, text: string, type = TEXT_TYPE): void {
  response.writeHead(status, { 'content-type': type })
  response.end(text)
}
