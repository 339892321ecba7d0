// Parses and formats an address with a port: `9.9.9.9:53`, `[2620:fe::fe]:53`. Text is parsed once; inside the program the address is
// octets (ip.ts) and the port is a number.

import { formatAddress, parseAddress, type Family } from './ip.ts'

/** `octets` always has 16 octets (ip.ts). `port` is 0..65535. */
export interface SocketAddress {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
}

/** The longest path, in octets, that the address of a UNIX socket can have (unix(7)). */
export const SOCKET_PATH_MAX = 107

export const SOCKET_ADDRESS_FORM = 'ADDRESS:PORT, such as 9.9.9.9:53 or [2620:fe::fe]:53'

/** Parses `ADDRESS:PORT` or `[IPV6]:PORT`. The port is required, 1..65535. Returns undefined for any other text. */
export function parseSocketAddress(text: string): SocketAddress | undefined {
  const colon = text.lastIndexOf(':')
  const portText = text.slice(colon + 1)
  if (colon < 0 || !/^[0-9]{1,5}$/.test(portText)) return undefined
  const port = Number(portText)
  const host = text.slice(0, colon)
  const bracketed = host.startsWith('[') && host.endsWith(']')
  const address = parseAddress(bracketed ? host.slice(1, -1) : host)
  if (address === undefined || port < 1 || port > 65535) return undefined
  if (bracketed !== host.includes(':')) return undefined
  return { family: address.family, octets: address.octets, port }
}

export const SERVER_FORM = 'an address, or ADDRESS:PORT, such as 9.9.9.9 or [2620:fe::fe]:53'
const DNS_PORT = 53

/** Parses a DNS server: ADDRESS:PORT, or an address alone, whose port is 53. Returns undefined for any other text. */
export function parseServer(text: string): SocketAddress | undefined {
  const bare = parseAddress(text)
  return bare === undefined ? parseSocketAddress(text) : { ...bare, port: DNS_PORT }
}

/** For example `192.0.2.1:53` and `[2001:db8::1]:53`. */
export function formatSocketAddress(address: SocketAddress): string {
  const text = formatAddress(address.family, address.octets)
  return address.family === 4 ? `${text}:${address.port}` : `[${text}]:${address.port}`
}
