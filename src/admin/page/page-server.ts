// Serves the page over TCP, to clients that have shown the token or a client certificate. A client without either gets 401 and a form that
// asks for the token, and learns nothing else. Only the page is served: no path of the admin API is reachable here.

import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { TLSSocket } from 'node:tls'
import type { Config } from '../../config/config.ts'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { formatAddress } from '../../core/ip.ts'
import { systemClock } from '../../core/clock.ts'
import { listenOnPort } from '../listen.ts'
import { foreignStatus, type OwnOrigin } from './foreign.ts'
import { Guesses } from './guesses.ts'
import type { PageCounts } from './counts.ts'
import { partsOf } from './page.ts'
import { Sessions } from './sessions.ts'
import type { SignInReason } from './sign-in.ts'

const CONNECTIONS_MAX = 128
const REQUEST_MS = 10_000
const FORM_MAX = 1024
const TOKEN_MIN = 16
const FORM_TYPE = 'application/x-www-form-urlencoded'

export type PageConfig = NonNullable<Config['admin']['page']>

/** The page that a server serves: of this process (page.ts), or of a daemon behind a socket. */
export interface ServedPage {
  readonly counts: PageCounts
  answer(request: IncomingMessage, response: ServerResponse, mayWrite: boolean): Promise<boolean>
  signIn(response: ServerResponse, reason: SignInReason): Promise<void>
}

export interface PageServerOptions {
  readonly page: ServedPage
  readonly config: PageConfig
  /** The token. Without it, `config` names the file of the token. */
  readonly token?: string
  /** What names the address, for the error that it is taken. */
  readonly named?: string
  readonly onError: (error: unknown) => void
}

export class PageServer {
  readonly #options: PageServerOptions
  readonly #guesses = new Guesses(systemClock)
  #server: Server | undefined
  #sessions: Sessions | undefined
  #origin: OwnOrigin = { scheme: 'http', isOwnName: (name) => name === 'localhost' }
  #port = 0

  constructor(options: PageServerOptions) {
    this.#options = options
  }

  /** The port on which the server listens. Valid after `start`. */
  get port(): number {
    return this.#port
  }

  /** Reads the token and the certificate, and listens. Rejects with UnavailableError that names the remedy. */
  async start(): Promise<void> {
    const { address, tokenFile, tls } = this.#options.config
    const token =
      this.#options.token ?? (tokenFile === undefined ? undefined : readToken(tokenFile))
    if (token !== undefined) this.#sessions = new Sessions(token, tls !== undefined, systemClock)
    const server = tls === undefined ? createServer() : this.#secureServer(tls)
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      response.on('error', () => undefined)
      void this.#answer(request, response)
    })
    server.maxConnections = CONNECTIONS_MAX
    server.requestTimeout = REQUEST_MS
    server.headersTimeout = REQUEST_MS
    this.#server = server
    const host = formatAddress(address.family, address.octets)
    this.#port = await listenOnPort(
      server,
      host,
      address.port,
      this.#options.named ?? 'admin.page.address',
    )
  }

  async stop(): Promise<void> {
    const server = this.#server
    if (server === undefined || !server.listening) return
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  #secureServer(tls: NonNullable<PageConfig['tls']>): Server {
    const cert = readPart(tls.certificate, 'admin.page.tls.certificate')
    const key = readPart(tls.key, 'admin.page.tls.key')
    const ca =
      tls.clientCa === undefined ? undefined : readPart(tls.clientCa, 'admin.page.tls.client-ca')
    try {
      const names = new X509Certificate(cert)
      this.#origin = {
        scheme: 'https',
        isOwnName: (name) => name === 'localhost' || names.checkHost(name) !== undefined,
      }
      const client = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: false }
      return createTlsServer({ cert, key, minVersion: 'TLSv1.2', ...client })
    } catch (error) {
      throw new UnavailableError(
        `Cannot serve the page: ${messageOf(error)}: give a certificate and its key in PEM form`,
      )
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { page, config, onError } = this.#options
    try {
      const foreign = foreignStatus(request, this.#origin)
      if (foreign !== undefined) {
        page.counts.refused.origin++
        return end(response, foreign)
      }
      const { pathname } = partsOf(request)
      if (isSignIn(pathname, request)) {
        return await this.#signIn(request, response)
      }
      if (pathname === '/sign-out' && request.method === 'POST') {
        return seeOther(response, this.#sessions?.close(request.headers.cookie))
      }
      if (!this.#mayRead(request, response)) return await this.#unknown(pathname, response)
      if (!(await page.answer(request, response, config.write))) end(response, 404)
    } catch (error) {
      onError(error)
      if (response.headersSent) response.destroy()
      else end(response, 500)
    }
  }

  /** True for a client with a certificate, a session, or the token in the header Authorization. */
  #mayRead(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket, headers } = request
    if (
      this.#options.config.tls?.clientCa !== undefined &&
      socket instanceof TLSSocket &&
      socket.authorized
    ) {
      return true
    }
    if (this.#sessions?.has(headers.cookie) === true) return true
    const token = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1]
    return token !== undefined && this.#isRight(token, request, response)
  }

  /** Looks at a token, unless the client has guessed too often. */
  #isRight(token: string, { socket }: IncomingMessage, response: ServerResponse): boolean {
    const client = socket.remoteAddress ?? ''
    const wait = this.#guesses.wait(client)
    if (wait > 0) {
      response.statusCode = 429
      response.setHeader('retry-after', wait)
      return false
    }
    const isRight = this.#sessions?.isToken(token) === true
    if (!isRight) this.#guesses.add(client)
    return isRight
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const token = new URLSearchParams(await readForm(request)).get('token') ?? ''
    if (this.#isRight(token.trim(), request, response)) {
      return seeOther(response, this.#sessions?.open())
    }
    await this.#unknown('/', response, 'wrong')
  }

  /** Answers a client that has not shown the token. Only a browser that opens the page gets the form. */
  async #unknown(
    path: string,
    response: ServerResponse,
    kind: 'none' | 'wrong' = 'none',
  ): Promise<void> {
    const { page } = this.#options
    const status = response.statusCode === 429 ? 429 : 401
    const seconds = Number(response.getHeader('retry-after'))
    const reason: SignInReason = status === 429 ? { kind: 'wait', seconds } : { kind }
    if (status === 429) page.counts.refused.guesses++
    else page.counts.refused.token++
    if (status === 401) response.setHeader('www-authenticate', 'Bearer')
    if (path === '/' && this.#sessions !== undefined) await page.signIn(response, reason)
    else end(response, status)
  }
}

/** True for the form with the token. A browser sends it to `/`, and then keeps the part of the address after #. */
function isSignIn(pathname: string, { method, headers }: IncomingMessage): boolean {
  if (method !== 'POST') return false
  return pathname === '/sign-in' || (pathname === '/' && headers['content-type'] === FORM_TYPE)
}

function seeOther(response: ServerResponse, cookie: string | undefined): void {
  const set = cookie === undefined ? {} : { 'set-cookie': cookie }
  response.writeHead(303, { location: '/', 'cache-control': 'no-store', ...set })
  response.end()
}

/** Answers without a body, so that the answer says nothing about this server. */
function end(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': 0, 'cache-control': 'no-store' })
  response.end()
}

async function readForm(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > FORM_MAX) return ''
  }
  return text
}

function readPart(path: string, key: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new UnavailableError(`Cannot serve the page: ${messageOf(error)}: give another ${key}`)
  }
}

/** Reads the token. Other users must not be able to read the file, and the token must be long enough to resist guesses. */
function readToken(path: string): string {
  const text = readPart(path, 'admin.page.token-file').toString('utf8').trim()
  if ((statSync(path).mode & 0o007) !== 0) {
    throw new UnavailableError(
      `Cannot serve the page: other users can use ${path}: run chmod 0600 ${path}`,
    )
  }
  if (text.length < TOKEN_MIN) {
    throw new UnavailableError(
      `Cannot serve the page: the token in ${path} has fewer than ${TOKEN_MIN} characters: run openssl rand -hex 32 > ${path}`,
    )
  }
  return text
}
