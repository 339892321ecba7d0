// `allowText` writes the line of an allow-list that allows one name or address, at one port if there is one. `parseAllow` reads the line.
// The text has no blank and no character that a shell changes, except brackets around an IPv6 address.

import { parseAddress } from '../core/ip.ts'
import { whyNoName } from '../core/name-like.ts'
import { parseMatchName } from './match/pattern.ts'

const PROTOCOLS: readonly string[] = ['TCP', 'UDP']

/** A name or address, and the port and protocol of connections to it. Without a port: all connections, and questions for the name. */
export interface Wanted {
  readonly host: string
  readonly port?: number
  /** A word such as `TCP`, in any case. */
  readonly protocol?: string
}

/** What to do about a refused address that had a name, as a sentence without a full stop. */
export function askNameAgain(name: string): string {
  return `the answer of ${name} with this address has expired: ask the name again`
}

/** What to do about a refused query for an address, as a sentence without a full stop. Undefined for other names. */
export function addressRemedy(name: string): string | undefined {
  const why = whyNoName(name)
  if (why === undefined) return undefined
  if (parseAddress(name) === undefined) return `${name} ${why}`
  return `${name} ${why}: no rule about names opens it; the line ${name} of a list, --allow or toCIDR allows connections to it`
}

/** True if a policy can name the text: it has the form of a name, and is no address. */
export function isPolicyName(text: string): boolean {
  return parseMatchName(text).kind === 'ok' && whyNoName(text) === undefined
}

/** Returns the line that allows a name that was asked, with all connections to it. Undefined if no line can. */
export function allowName(name: string): string | undefined {
  return whyNoName(name) === undefined ? allowText({ host: name }) : undefined
}

/** Returns the line. Undefined if no line of an allow-list can allow this. */
export function allowText({ host, port, protocol = '' }: Wanted): string | undefined {
  const isAddress = parseAddress(host) !== undefined
  if (!isAddress && !isPolicyName(host)) return undefined
  if (port === undefined) return host
  if (port === 0 || !PROTOCOLS.includes(protocol.toUpperCase())) return undefined
  const bracketed = isAddress && host.includes(':') ? `[${host}]` : host
  return `${bracketed}:${port}/${protocol.toLowerCase()}`
}
