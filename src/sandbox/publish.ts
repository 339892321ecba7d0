// `--publish [ADDRESS:]PORT[:INNER]`: a port of the caller whose connections go to the command's loopback. TCP.

import { formatAddress, parseAddress } from '../core/ip.ts'

export interface Publish {
  /** Without brackets; 127.0.0.1 when none was given. */
  readonly address: string
  readonly port: number
  readonly inner: number
}

export const PUBLISH_FORM = '[ADDRESS:]PORT[:INNER], such as 8080 or 127.0.0.1:8080:80'

/** Undefined when the text is none. */
export function parsePublish(text: string): Publish | undefined {
  const match = /^(?:(\[[^\]]+\]|[0-9.]*\.[0-9.]*):)?([0-9]{1,5})(?::([0-9]{1,5}))?$/.exec(text)
  if (match === null) return undefined
  const [, host = '127.0.0.1', portText = '', innerText = portText] = match
  const address = parseAddress(host.replace(/^\[|\]$/g, ''))
  const [port, inner] = [Number(portText), Number(innerText)]
  if (address === undefined || !isPort(port) || !isPort(inner)) return undefined
  return { address: formatAddress(address.family, address.octets), port, inner }
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535
}
