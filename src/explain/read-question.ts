// `readQuestion` reads a question to `explain` from texts. The texts come from options of the command line, JSON of the admin API, or a
// policy test.

import { parseAddress } from '../core/ip.ts'
import { parseName, type NameResult } from '../core/name.ts'
import { whyNoName } from '../core/name-like.ts'
import { parseProtocol, PORT_PROTOCOLS, TCP, UDP, type DnsProtocol } from '../core/protocol.ts'
import { parseSocketAddress, SOCKET_ADDRESS_FORM } from '../core/socket-address.ts'
import type { Question } from './explanation.ts'

export interface QuestionTexts {
  readonly ask?: string | undefined
  readonly server?: string | undefined
  readonly protocol?: string | undefined
  readonly name?: string | undefined
  readonly address?: string | undefined
  readonly port?: string | undefined
}

/** The question, or the first field with a fault. */
export type QuestionResult =
  | { readonly kind: 'ok'; readonly question: Question }
  | { readonly kind: 'bad'; readonly field: keyof QuestionTexts; readonly reason: string }

const DNS_PROTOCOLS: ReadonlyMap<string, DnsProtocol> = new Map([
  ['UDP', UDP],
  ['TCP', TCP],
])

/** Returns a field as the user writes it, such as `--name`. */
type Spelling = (field: keyof QuestionTexts) => string

const PORT_FORM =
  'PORT/PROTOCOL or ICMP, such as 443/TCP; PORT is 1 to 65535, PROTOCOL is TCP, UDP or SCTP'

/** Returns true if a field says what kind of question is meant. A port alone does not. */
export function hasQuestion({ ask, server, protocol, name, address }: QuestionTexts): boolean {
  return [ask, server, protocol, name, address].some((text) => text !== undefined)
}

/** Reads a question. With `ask`, it is a question about a name; without it, about a connection. Reasons name fields by `spell`. */
export function readQuestion(
  texts: QuestionTexts,
  spell: Spelling = (field) => field,
): QuestionResult {
  return texts.ask === undefined ? readConnect(texts, spell) : readAsk(texts.ask, texts, spell)
}

function readAsk(
  ask: string,
  { server, protocol: over = 'UDP', name, address, port }: QuestionTexts,
  spell: Spelling,
): QuestionResult {
  const beside = name !== undefined ? 'name' : address !== undefined ? 'address' : undefined
  const other = beside ?? (port !== undefined ? 'port' : undefined)
  if (other !== undefined) {
    return bad(other, `is for a connection: write ${spell('name')} in place of ${spell('ask')}`)
  }
  const parsed = readName(ask)
  if (parsed.kind === 'bad') return bad('ask', `found ${quoted(ask)}: ${parsed.reason}`)
  const protocol = DNS_PROTOCOLS.get(over.toUpperCase())
  if (protocol === undefined) return bad('protocol', `found ${quoted(over)}, expected UDP or TCP`)
  const question = { kind: 'ask', name: parsed.name, protocol } as const
  if (server === undefined) return { kind: 'ok', question }
  const at = parseSocketAddress(server)
  if (at === undefined)
    return bad('server', `found ${quoted(server)}, expected ${SOCKET_ADDRESS_FORM}`)
  const { family, octets } = at
  const to = { address: { family, octets, length: family === 4 ? 32 : 128 }, port: at.port }
  return { kind: 'ok', question: { ...question, server: to } }
}

function readConnect(
  { server, protocol, name, address, port }: QuestionTexts,
  spell: Spelling,
): QuestionResult {
  const askOnly = server !== undefined ? 'server' : protocol !== undefined ? 'protocol' : undefined
  if (askOnly !== undefined) {
    const remedy = `write ${spell('ask')} in place of ${spell('name')} and ${spell('address')}`
    return bad(askOnly, `is for a question for a name: ${remedy}`)
  }
  if (name === undefined && address === undefined) {
    return bad('name', 'found neither ask nor name nor address, expected one')
  }
  if (port === undefined) return bad('port', 'found none, expected one, such as 443/TCP')
  const to = readPort(port)
  if (to === undefined) {
    return bad('port', `found ${quoted(port)}, expected ${PORT_FORM}`)
  }
  const question = { kind: 'connect', ...to } as const
  const at = address === undefined ? undefined : parseAddress(address)
  if (address !== undefined && at === undefined) {
    return bad('address', `found ${quoted(address)}, expected an address`)
  }
  const where = at === undefined ? {} : { address: at }
  if (name === undefined) return { kind: 'ok', question: { ...question, ...where } }
  const why = whyNoName(name)
  if (why !== undefined) {
    const remedy = parseAddress(name) === undefined ? '' : `: write ${spell('address')}`
    return bad('name', `found ${quoted(name)}, which ${why}${remedy}`)
  }
  const parsed = readName(name)
  if (parsed.kind === 'bad') return bad('name', `found ${quoted(name)}: ${parsed.reason}`)
  return { kind: 'ok', question: { ...question, ...where, name: parsed.name } }
}

/** Reads a name. Refuses a URL or a pattern: it could be a name on the wire, but the user hardly means one. */
function readName(text: string): NameResult {
  const reason = oddCharacter(text)
  return reason === undefined ? parseName(text) : { kind: 'bad', reason }
}

/** Returns why a text is hardly meant as a name: it is a URL, an address with a port, or a pattern. Undefined for other texts. */
function oddCharacter(text: string): string | undefined {
  const [odd] = /[^a-z0-9._\\-]/i.exec(text.replace(/\\(?:\d{3}|.)/g, '')) ?? []
  if (odd === undefined || odd.charCodeAt(0) > 0x7e) return undefined
  const octet = String(odd.charCodeAt(0)).padStart(3, '0')
  return `character ${quoted(odd)}: write ${remedyFor(odd, text)}; an octet that is meant so is written \\${octet}`
}

/** Returns why a text to ask for is hardly meant as a name, as the end of a sentence. Undefined for a name. */
export function askedFault(text: string): string | undefined {
  const why = whyNoName(text)
  if (why === undefined) {
    // A wildcard name can be asked for, such as one of a zone file.
    const odd = text.includes('*') ? undefined : oddCharacter(text)
    return odd === undefined ? undefined : `: ${odd}`
  }
  const remedy = parseAddress(text) === undefined ? '' : `: write explain ${text} --port 443`
  return `, which ${why}${remedy}`
}

function remedyFor(odd: string, text: string): string {
  if (odd === '*') return 'a name instead of a pattern'
  if (text.includes('/')) return 'the name alone, without scheme and path'
  return odd === ':' ? 'the name alone, without port' : 'the name alone'
}

/** Reads `443/TCP`, or a protocol without ports, such as `ICMP`. For a port without a protocol, the protocol is TCP. */
function readPort(text: string): { readonly protocol: number; readonly port: number } | undefined {
  if (/^icmp(?:v6)?$/i.test(text)) return { protocol: parseProtocol(text) ?? 0, port: 0 }
  const [, digits, word = 'TCP'] = /^(\d{1,5})(?:\/([a-z]+))?$/i.exec(text) ?? []
  const protocol = parseProtocol(word) ?? 0
  const port = Number(digits)
  const isPort = port >= 1 && port <= 65_535
  return isPort && PORT_PROTOCOLS.includes(protocol) ? { protocol, port } : undefined
}

function quoted(text: string): string {
  return JSON.stringify(text)
}

function bad(field: keyof QuestionTexts, reason: string): QuestionResult {
  return { kind: 'bad', field, reason }
}
