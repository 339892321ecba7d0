// One name that is allowed, `PATTERN[:PORT[/PROTOCOL]]`, as in allow-lists and `exec --allow`: no port is every port, no
// protocol TCP and UDP. A fault says where in the text it is, counted from 1. Pure.

import { parsePattern, type Pattern } from './pattern.ts'

export type AllowProtocol = 'TCP' | 'UDP'

/** Names, with the port and the protocols of connections to them. */
export interface Allow {
  readonly pattern: Pattern
  /** 0: every port. */
  readonly port: number
  readonly protocols: readonly AllowProtocol[]
}

export type AllowResult =
  | { readonly kind: 'ok'; readonly allow: Allow }
  | { readonly kind: 'bad'; readonly column: number; readonly reason: string }

const BOTH: readonly AllowProtocol[] = ['TCP', 'UDP']

export function parseAllow(text: string): AllowResult {
  const colon = text.indexOf(':')
  const patternText = colon < 0 ? text : text.slice(0, colon)
  const parsed = parsePattern(patternText, { allowStar: true })
  if (parsed.kind === 'bad') {
    return { kind: 'bad', column: columnOf(patternText), reason: parsed.reason }
  }
  const { pattern } = parsed
  if (colon < 0) return { kind: 'ok', allow: { pattern, port: 0, protocols: BOTH } }
  const rest = text.slice(colon + 1)
  const [portText = '', protocolText, more] = rest.split('/')
  const port = /^[0-9]{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535) {
    const reason = `found ${JSON.stringify(portText)}, expected a port from 1 to 65535`
    return { kind: 'bad', column: colon + 2, reason }
  }
  if (protocolText === undefined) return { kind: 'ok', allow: { pattern, port, protocols: BOTH } }
  const protocol = BOTH.find((each) => each === protocolText.toUpperCase())
  if (protocol === undefined || more !== undefined) {
    const found = rest.slice(portText.length + 1)
    const reason = `found ${JSON.stringify(found)}, expected tcp or udp`
    return { kind: 'bad', column: colon + portText.length + 3, reason }
  }
  return { kind: 'ok', allow: { pattern, port, protocols: [protocol] } }
}

/** Where a pattern goes wrong: its first odd character, its first empty label, else its beginning. */
function columnOf(text: string): number {
  const odd = /[^a-zA-Z0-9_.*\-\s]|(?<=\S)\s(?=\s*\S)/u.exec(text)
  if (odd !== null) return odd.index + 1
  const empty = /^\.|\.\./.exec(text)
  return empty === null ? 1 : empty.index + empty[0].length
}
