// The web page of a node without packets, over TCP and on an admin socket, and requests to it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request, type IncomingHttpHeaders } from 'node:http'
import { request as requestTls } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newPageCounts, type PageCounts } from '../../../src/admin/page/counts.ts'
import { Page } from '../../../src/admin/page/page.ts'
import { PageServer, type PageConfig } from '../../../src/admin/page/page-server.ts'
import { AdminServer } from '../../../src/admin/server.ts'
import type { AdminState } from '../../../src/admin/state.ts'
import { prefixOf } from './node.ts'

export const TOKEN = 'a-token-of-twenty-four-c'

export interface PageLab {
  readonly counts: PageCounts
  readonly folder: string
  readonly tcp: { readonly port: number }
  readonly socket: { readonly socketPath: string }
  readonly errors: unknown[]
  stop(): Promise<void>
}

export async function servePage(state: AdminState, given: object = {}): Promise<PageLab> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-page-'))
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 })
  const counts = newPageCounts()
  const page = new Page(state, counts)
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const address = { ...prefixOf('127.0.0.1'), port: 0 }
  const config: PageConfig = { address, tokenFile, tls: undefined, write: false, ...given }
  const server = new PageServer({ page, config, onError })
  const socketPath = join(folder, 'admin.sock')
  const admin = new AdminServer({ state, socket: socketPath, onError, page })
  const stop = async (): Promise<void> => {
    page.stop()
    await server.stop()
    await admin.stop()
    rmSync(folder, { recursive: true })
  }
  try {
    await admin.start()
    await server.start()
  } catch (error) {
    await stop()
    throw error
  }
  const [tcp, socket] = [{ port: server.port }, { socketPath }]
  return { counts, folder, tcp, socket, errors, stop }
}

export interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** True for a request over TLS that takes any certificate. An object: the client's own certificate and key, in PEM form. */
  readonly tls?: boolean | { readonly cert: string; readonly key: string }
}

export interface Got {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export const WITH_TOKEN = { authorization: `Bearer ${TOKEN}` }

export async function send(
  where: { readonly socketPath: string } | { readonly port: number },
  path: string,
  { method = 'GET', headers = {}, body, tls = false }: Sent = {},
): Promise<Got> {
  const options = { ...where, path, method, headers, agent: false }
  return await new Promise((resolve, reject) => {
    const own = typeof tls === 'object' ? tls : {}
    const sent =
      tls === false
        ? request({ ...options, host: '127.0.0.1' })
        : requestTls({ ...options, ...own, host: '127.0.0.1', rejectUnauthorized: false })
    sent.on('response', (response) => {
      const chunks: Uint8Array[] = []
      response.on('data', (chunk: Uint8Array) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode: status = 0 } = response
        resolve({ status, headers: response.headers, body: Buffer.concat(chunks) })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
