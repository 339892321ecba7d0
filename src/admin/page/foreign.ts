// Recognizes requests that a browser sends for another site: by the name in Host (DNS rebinding), by Origin, and by Sec-Fetch-Site. The
// page and the admin API refuse such requests, because a browser on the same machine can reach a forwarded socket.

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/** The status of a refusal: 421 for a foreign name in Host, 403 for a request from another origin. */
export type ForeignStatus = 403 | 421

export interface OwnOrigin {
  readonly scheme: 'http' | 'https'
  /** True for a host name under which the page is reached. The name is in lower case, without port. */
  readonly isOwnName: (name: string) => boolean
}

/** Names of this machine, and names without a dot, such as `admin`, which public DNS cannot point at this machine. */
export function isLocalName(name: string): boolean {
  return !name.includes('.') || name.endsWith('.localhost')
}

/** Returns the status of the refusal, or undefined for a request of the page itself, of a program, or of a person. */
export function foreignStatus(
  { headers, method, url }: Pick<IncomingMessage, 'headers' | 'method' | 'url'>,
  { scheme, isOwnName }: OwnOrigin,
): ForeignStatus | undefined {
  const host = headers.host ?? ''
  const name = hostName(host)
  if (name !== '' && isIP(name) === 0 && !isOwnName(name)) return 421
  const { origin } = headers
  if (origin !== undefined && origin !== `${scheme}://${host}`) return 403
  const site = headers['sec-fetch-site']
  if (site === undefined || site === 'same-origin' || site === 'none') return undefined
  // A link on another site can open the page. It cannot read what the page shows.
  const opensPage = headers['sec-fetch-mode'] === 'navigate' && method === 'GET' && url === '/'
  return opensPage ? undefined : 403
}

/** True for a request that a browser sends for a script or a form. */
export function isFromBrowser({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined
}

/** `[::1]:9466` -> `::1`, `Localhost:80` -> `localhost`. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)?.[1]
  return (bracketed ?? host.replace(/:\d*$/, '')).toLowerCase()
}
