// `parseAllow` reads one allowed target, `TARGET[:PORT[/PROTOCOL]]`, as in allow-lists and `exec --allow`. The target is a name, a pattern,
// an address or a prefix. Without a port, every port is allowed. Without a protocol, TCP and UDP are allowed. An IPv6 target with a port
// stands in brackets. A fault has a column in the text, counted from 1. The functions have no side effects.

import { parseAddress, parsePrefix, type Prefix } from '../core/ip.ts'
import { looksLikeAddress6, whyNoName } from '../core/name-like.ts'
import { parsePattern, type Pattern } from './match/pattern.ts'

export type AllowProtocol = 'TCP' | 'UDP'

export type AllowTarget =
  | { readonly kind: 'name'; readonly pattern: Pattern }
  | { readonly kind: 'prefix'; readonly prefix: Prefix }

/** A target, and the port and protocols of the allowed connections to the target. */
export interface Allow {
  readonly target: AllowTarget
  /** 0 means every port. */
  readonly port: number
  readonly protocols: readonly AllowProtocol[]
}

export type AllowResult =
  | { readonly kind: 'ok'; readonly allow: Allow }
  | { readonly kind: 'bad'; readonly column: number; readonly reason: string }

/** One entry of a list of allowed targets. `line` and `column` count from 1. */
export interface AllowLine {
  readonly line: number
  readonly column: number
  /** The entry without blanks around it and without its comment. */
  readonly text: string
  readonly read: AllowResult
}

/** Returns true for the file name of an allow-list. */
export function isAllowList(file: string): boolean {
  return file.endsWith('.allow')
}

const BOTH: readonly AllowProtocol[] = ['TCP', 'UDP']

/** Reads a list with one allowed target per line. `#` begins a comment, at the beginning of a line or after a blank. Never throws. */
export function allowLines(text: string): readonly AllowLine[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    const entry = line.replace(/(^|\s)#.*$/, '').trimEnd()
    const start = entry.length - entry.trimStart().length
    if (start === entry.length) return []
    const entered = entry.slice(start)
    return [{ line: i + 1, column: start + 1, text: entered, read: parseAllow(entered) }]
  })
}

/** Reads one allowed target. Never throws. */
export function parseAllow(text: string): AllowResult {
  const url = urlFault(text)
  if (url !== undefined) return { kind: 'bad', column: 1, reason: url }
  const { host, start, end } = splitTarget(text)
  const target = parseTarget(host)
  if (target.kind === 'bad') return { ...target, column: start + target.column }
  const rest = text.slice(end)
  if (rest === '') return { kind: 'ok', allow: { target, port: 0, protocols: BOTH } }
  if (!rest.startsWith(':')) {
    const reason = `found ${JSON.stringify(rest)}, expected :PORT or the end`
    return { kind: 'bad', column: end + 1, reason }
  }
  return parsePort(target, rest.slice(1), end + 2)
}

/** The ports of URLs without a port, as an entry has them. */
const URL_PORTS: ReadonlyMap<string, string> = new Map([
  ['http:', ':80/tcp'],
  ['https:', ':443/tcp'],
])

/** For a URL, returns the fault with the entry to write instead. Returns undefined for any other text. */
function urlFault(text: string): string | undefined {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return undefined
  const { hostname = '', port = '', protocol = '' } = URL.parse(text) ?? {}
  const place = port === '' ? (URL_PORTS.get(protocol) ?? '') : `:${port}/tcp`
  return `found a URL, expected a name${hostname === '' ? '' : `: write ${hostname}${place}`}`
}

/** Reads the port and protocol. `text` is the text after the colon, and begins at `column`. */
function parsePort(target: AllowTarget, text: string, column: number): AllowResult {
  const [portText = '', protocolText, more] = text.split('/')
  const port = /^[0-9]{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535) {
    const reason = `found ${JSON.stringify(portText)}, expected a port from 1 to 65535`
    return { kind: 'bad', column, reason }
  }
  if (protocolText === undefined) return { kind: 'ok', allow: { target, port, protocols: BOTH } }
  const protocol = BOTH.find((each) => each === protocolText.toUpperCase())
  if (protocol === undefined || more !== undefined) {
    const found = text.slice(portText.length + 1)
    const reason = `found ${JSON.stringify(found)}, expected tcp or udp`
    return { kind: 'bad', column: column + portText.length + 1, reason }
  }
  return { kind: 'ok', allow: { target, port, protocols: [protocol] } }
}

/** Splits off the target. `host`: the target. `start`: its offset. `end`: the offset of the text after the target. */
function splitTarget(text: string): {
  readonly host: string
  readonly start: number
  readonly end: number
} {
  const bracket = text.startsWith('[') ? text.indexOf(']') : -1
  if (bracket > 0) return { host: text.slice(1, bracket), start: 1, end: bracket + 1 }
  const colon = looksLikeAddress6(text) ? -1 : text.indexOf(':')
  const end = colon < 0 ? text.length : colon
  return { host: text.slice(0, end), start: 0, end }
}

function parseTarget(
  text: string,
): AllowTarget | { readonly kind: 'bad'; readonly column: number; readonly reason: string } {
  const [address = ''] = text.split('/')
  if (parseAddress(address) !== undefined) {
    const parsed = parsePrefix(text)
    if (parsed.kind === 'bad') return { kind: 'bad', column: 1, reason: parsed.reason }
    return { kind: 'prefix', prefix: parsed.prefix }
  }
  const why = whyNoName(address)
  if (why !== undefined) {
    return { kind: 'bad', column: 1, reason: `found ${JSON.stringify(address)}, which ${why}` }
  }
  // An unset variable in `*.$DOMAIN` makes this text, and a policy takes it as every name.
  if (/^\*+\.$/.test(text)) {
    const reason = `found "${text}", expected a name behind the dot: write * for every name`
    return { kind: 'bad', column: 1, reason }
  }
  const parsed = parsePattern(text, { allowStar: true })
  if (parsed.kind === 'bad') return { kind: 'bad', column: columnOf(text), reason: parsed.reason }
  return { kind: 'name', pattern: parsed.pattern }
}

/** Returns the column of the fault in a pattern: its first refused character, else its first empty DNS label, else its beginning. */
function columnOf(text: string): number {
  const odd = /[^a-zA-Z0-9_.*\-\s]|(?<=\S)\s(?=\s*\S)/u.exec(text)
  if (odd !== null) return odd.index + 1
  const empty = /^\.|\.\./.exec(text)
  return empty === null ? 1 : empty.index + empty[0].length
}
