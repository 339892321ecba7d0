// An API server over TLS with HTTP/2 and HTTP/1.1, whose state is an ApiModel. Tests use it where the real control plane is not available.

import type { AddressInfo, Socket } from 'node:net'
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import { gzipSync } from 'node:zlib'
import type { ApiModel } from './api-model.ts'
import { ApiRequests, type Reply } from './api-requests.ts'
import { change } from './api-writes.ts'
import { status } from './api-statuses.ts'
import type { ServerCertificate } from './certificates.ts'

/** The real servers pack larger bodies. */
const PACKED_FROM = 128 * 1024

/** A watch that wants bookmarks gets one so long before its end. */
const BOOKMARK_MS = 2_000

export type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => boolean

export class FakeApiServer {
  readonly model: ApiModel
  /** The tokens that the server knows. */
  readonly tokens = new Set(['admintoken', 'nodetoken'])
  /** Answers a request in place of the server, if it returns true. */
  before: Handler = () => false
  requestCount = 0
  readonly #requests: ApiRequests
  readonly #server: Http2SecureServer
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<Socket>()

  constructor(model: ApiModel, certificate: ServerCertificate) {
    this.model = model
    this.#requests = new ApiRequests(model)
    this.#server = createSecureServer({ ...certificate, allowHTTP1: true })
    this.#server.on('session', (session) => {
      this.#sessions.add(session)
      session.on('close', () => this.#sessions.delete(session))
      session.on('error', () => undefined)
    })
    this.#server.on('secureConnection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => undefined)
    })
    this.#server.on('request', (request, response) => {
      void this.#answer(request, response)
    })
  }

  async listen(port = 0): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(port, '127.0.0.1', done))
  }

  get port(): number {
    const address: AddressInfo | string | null = this.#server.address()
    return address === null || typeof address === 'string' ? 0 : address.port
  }

  get origin(): string {
    return `https://127.0.0.1:${this.port}`
  }

  get sessionCount(): number {
    return this.#sessions.size
  }

  /** Says goodbye to every client: open requests can finish. */
  sayGoodbye(): void {
    for (const session of this.#sessions) {
      if (!session.closed && !session.destroyed) session.goaway(0)
    }
  }

  /** Breaks all connections, those of HTTP/1.1 too. */
  breakAll(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Ends all watches in an orderly way. */
  endWatches(): void {
    for (const watcher of this.model.watchers) watcher.end()
  }

  async close(): Promise<void> {
    this.breakAll()
    await new Promise((done) => this.#server.close(done))
  }

  async #answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    this.requestCount++
    response.on('error', () => undefined)
    if (this.before(request, response)) return
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (!this.tokens.has(token)) return this.#body(request, response, 401, status.unauthorized())
    const isAdministrator = token === 'admintoken'
    if (request.method !== 'GET') return await this.#write(request, response, isAdministrator)
    this.#reply(request, response, this.#requests.answer(request.url, isAdministrator))
  }

  #reply(request: Http2ServerRequest, response: Http2ServerResponse, reply: Reply): void {
    if (reply.kind === 'body') return this.#body(request, response, reply.code, reply.body)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('')
    const timer = setTimeout(() => response.end(), reply.seconds * 1000)
    const marking = setTimeout(
      () => {
        const event = reply.bookmark()
        if (event !== undefined) response.write(`${JSON.stringify(event)}\n`)
      },
      Math.max(0, reply.seconds * 1000 - BOOKMARK_MS),
    )
    const stop = reply.begin(
      (event) => response.write(`${JSON.stringify(event)}\n`),
      () => response.end(),
    )
    response.on('close', () => {
      clearTimeout(timer)
      clearTimeout(marking)
      stop()
    })
  }

  #body(
    request: Http2ServerRequest,
    response: Http2ServerResponse,
    code: number,
    body: unknown,
  ): void {
    const text = JSON.stringify(body)
    const isPacked =
      text.length > PACKED_FROM && request.headers['accept-encoding']?.includes('gzip') === true
    response.writeHead(code, {
      'content-type': 'application/json',
      ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
      ...(code === 429 ? { 'retry-after': '1' } : {}),
    })
    response.end(isPacked ? gzipSync(text) : text)
  }

  async #write(
    request: Http2ServerRequest,
    response: Http2ServerResponse,
    isAdministrator: boolean,
  ): Promise<void> {
    const { method, url } = request
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const text = Buffer.concat(chunks).toString('utf8')
    const sent = text === '' ? {} : parse(text)
    const written = change(this.model, method, url, sent, isAdministrator)
    this.#body(request, response, written.code, written.body)
  }
}

function parse(text: string): unknown {
  return JSON.parse(text)
}
