// An admin socket that records each request and returns the answer that a test set.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Request {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly type: string | undefined
  readonly body: string
}

export type Reply = (response: ServerResponse, request: Request) => void

export const ENFORCED = json(200, { endpoint: 'shop/web-0', enforced: true })

/** An answer with a JSON body. */
export function json(status: number, body: object): Reply {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
}

export class FakeDaemon {
  readonly folder = mkdtempSync(join(tmpdir(), 'namegate-cni-'))
  readonly socket = join(this.folder, 'admin.sock')
  readonly requests: Request[] = []
  reply: Reply = ENFORCED
  readonly #server: Server = createServer((request, response) => this.#take(request, response))

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.socket, resolve))
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<unknown>((resolve) => this.#server.close(resolve))
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #take(message: IncomingMessage, response: ServerResponse): void {
    let body = ''
    message.setEncoding('utf8').on('data', (text: string) => (body += text))
    message.on('end', () => {
      const { method, url: path, headers } = message
      const request = { method, path, type: headers['content-type'], body }
      this.requests.push(request)
      this.reply(response, request)
    })
  }
}
