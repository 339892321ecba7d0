// `allowText` writes the line of an allow-list that allows one name or address, at one port if there is one. `parseAllow` reads the line.
// The text has no blank and no character that a shell changes, except brackets around an IPv6 address.

import { parseAddress } from '../core/ip.ts'
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

/** Returns the line. Undefined if no line of an allow-list can allow this. */
export function allowText({ host, port, protocol = '' }: Wanted): string | undefined {
  const isAddress = parseAddress(host) !== undefined
  if (!isAddress && parseMatchName(host).kind === 'bad') return undefined
  if (port === undefined) return host
  if (port === 0 || !PROTOCOLS.includes(protocol.toUpperCase())) return undefined
  const bracketed = isAddress && host.includes(':') ? `[${host}]` : host
  return `${bracketed}:${port}/${protocol.toLowerCase()}`
}
