// Sends the form that asks for the token. Its style stands in the file, because no other file goes to a client without the token.

import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { PageFiles } from './files.ts'
import { HEADERS, POLICY } from './headers.ts'

export async function sendSignIn(
  files: PageFiles,
  response: ServerResponse,
  status: number,
): Promise<void> {
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
  const file = await files.signIn()
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(file.plain.toString('utf8')) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = POLICY.replace("style-src 'self'", `style-src 'sha256-${hash}'`)
  response.setHeader('content-security-policy', policy)
  response.setHeader('cache-control', 'no-store')
  response.writeHead(status, { 'content-type': file.type, 'content-length': file.plain.length })
  response.end(file.plain)
}
