// ForwardedPage is the page of a daemon behind its admin socket. It passes the requests of the page to the socket, and no other request, so
// that the admin API stays out of reach. The socket lets the page change nothing.

import { request, type IncomingMessage, type ServerResponse } from 'node:http'
import { readBody } from '../../admin/requests.ts'
import { newPageCounts } from '../../admin/page/counts.ts'
import { PageFiles } from '../../admin/page/files.ts'
import { partsOf } from '../../admin/page/page.ts'
import type { ServedPage } from '../../admin/page/page-server.ts'
import { sendSignIn, type SignInReason } from '../../admin/page/sign-in.ts'

/** The headers of a browser that the page reads. */
const PASSED = ['accept-encoding', 'content-type', 'content-length', 'if-none-match'] as const
const BAD_GATEWAY = 502

export class ForwardedPage implements ServedPage {
  readonly counts = newPageCounts()
  readonly #socket: string
  readonly #files = new PageFiles()

  constructor(socket: string) {
    this.#socket = socket
  }

  async answer(asked: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const { pathname } = partsOf(asked)
    if (pathname !== '/' && !pathname.startsWith('/page/')) return false
    const body = await readBody(asked)
    if (body === undefined) refuse(response, 413, 'the body is too long')
    else await this.#forward(asked, body, response)
    return true
  }

  async signIn(response: ServerResponse, reason: SignInReason): Promise<void> {
    await sendSignIn(this.#files, response, reason)
  }

  async #forward(
    asked: IncomingMessage,
    body: Uint8Array,
    response: ServerResponse,
  ): Promise<void> {
    await new Promise<void>((done) => {
      const { method, url: path = '/' } = asked
      const options = { socketPath: this.#socket, agent: false, method, path }
      const sent = request({ ...options, headers: headersOf(asked) }, (answer) => {
        response.writeHead(answer.statusCode ?? BAD_GATEWAY, answer.headers)
        // The first line of a stream can be late. The browser must know before that it is connected.
        response.flushHeaders()
        answer.on('error', () => response.destroy())
        answer.pipe(response)
      })
      sent.on('error', () => {
        if (response.headersSent) response.destroy()
        else refuse(response, BAD_GATEWAY, 'the daemon does not answer: it may have ended')
      })
      response.on('close', () => {
        sent.destroy()
        done()
      })
      // One write sends head and body. The daemon can close the connection after its answer, and a later write would then fail.
      sent.end(body)
    })
  }
}

function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  const passed = PASSED.flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return { host: 'localhost', ...Object.fromEntries(passed) }
}

function refuse(response: ServerResponse, status: number, error: string): void {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  response.writeHead(status, headers).end(`${JSON.stringify({ error })}\n`)
}
