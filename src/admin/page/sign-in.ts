// Sends the form that asks for the token, and says why the last token was not accepted. The style stands in the file, because no other file
// goes to a client without the token.

import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { PageFiles } from './files.ts'
import { HEADERS, POLICY } from './headers.ts'

/** Why a browser gets the form: it has shown no token, a wrong one, or too many wrong ones. */
export type SignInReason =
  | { readonly kind: 'none' | 'wrong' }
  | { readonly kind: 'wait'; readonly seconds: number }

/** The place of the message in the file. */
const PLACE = '<p role="alert"></p>'

export async function sendSignIn(
  files: PageFiles,
  response: ServerResponse,
  reason: SignInReason,
): Promise<void> {
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
  const file = await files.signIn()
  const text = file.plain.toString('utf8')
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(text) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = POLICY.replace("style-src 'self'", `style-src 'sha256-${hash}'`)
  response.setHeader('content-security-policy', policy)
  response.setHeader('cache-control', 'no-store')
  const form = Buffer.from(text.replace(PLACE, `<p role="alert">${messageFor(reason)}</p>`))
  const status = reason.kind === 'wait' ? 429 : 401
  response.writeHead(status, { 'content-type': file.type, 'content-length': form.length })
  response.end(form)
}

function messageFor(reason: SignInReason): string {
  if (reason.kind !== 'wait') return reason.kind === 'wrong' ? 'Wrong token' : ''
  return `Too many tries: wait ${reason.seconds} ${reason.seconds === 1 ? 'second' : 'seconds'}`
}
