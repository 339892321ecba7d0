// `parseFlowLine` parses one line of recorded flows, as `namegate flows -o json` prints it, and returns what a policy must allow. Unknown
// members of the JSON object are ignored. A member with a wrong value makes the line `bad`, with a reason that names the member. The parser
// has no side effects, and never throws on any text.

import { parseAddress } from '../core/ip.ts'
import type { Sighting } from './evidence.ts'
import type { Connection, Place } from './needs.ts'

/** What one line shows: a name that was `asked`, a connection that was `reached` while audit let it pass, or something else. */
export type FlowLine =
  | (Seen & { readonly kind: 'asked'; readonly name: string })
  | (Seen & { readonly kind: 'reached'; readonly connection: Connection })
  | Denied
  /** The daemon did not record `count` flows. */
  | { readonly kind: 'lost'; readonly count: number }
  /** The line shows nothing that a policy could allow for an endpoint. */
  | { readonly kind: 'other' }
  | { readonly kind: 'bad'; readonly reason: string }

/** Policy denied the query or packet, so no rule is suggested for it. */
interface Denied {
  readonly kind: 'denied'
  readonly count: number
  /** The name, or the place of the packet. */
  readonly what: string
  /** The name that was asked. Undefined for a packet. */
  readonly name: string | undefined
  /** Undefined for a question, and for a packet whose place is unknown. */
  readonly place: Place | undefined
  /** The time of the last flow. Empty when unknown. */
  readonly last: string
  /** Undefined if no endpoint is known. */
  readonly endpoint: string | undefined
  readonly labels: readonly string[]
}

interface Seen {
  readonly labels: readonly string[]
  readonly sighting: Sighting
}

const ASKED: readonly string[] = ['answered', 'audited', 'forwarded']
const DENIED: readonly string[] = ['denied', 'drop']
const OTHER: readonly string[] = [
  'unknown-client',
  'interface-mismatch',
  'not-ready',
  'malformed',
  'overloaded',
  'upstream-failed',
  'policy-lost',
  'expired-use',
]
const KINDS = [...ASKED, 'audit', ...DENIED, ...OTHER, 'lost']
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

/** Returns what the line shows. `kind` is `bad` for a line that is not a flow. */
export function parseFlowLine(line: string): FlowLine {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return bad('found no JSON, expected one JSON object a line')
  }
  if (!isMembers(value)) return bad(`found ${kindOf(value)}, expected a JSON object`)
  try {
    return read(value)
  } catch (error) {
    if (error instanceof WrongMember) return bad(error.message)
    throw error
  }
}

function read(members: Members): FlowLine {
  const kind = text(members, 'kind')
  if (!KINDS.includes(kind)) throw wrong(members, 'kind', `one of ${KINDS.join(', ')}`)
  const count =
    members['count'] === undefined ? 1 : whole(members, 'count', Number.MAX_SAFE_INTEGER)
  if (kind === 'lost') return { kind, count }
  if (DENIED.includes(kind)) return { kind: 'denied', count, ...deniedIn(members) }
  if (OTHER.includes(kind) || members['endpoint'] === null) return { kind: 'other' }
  const seen = seenIn(members, count)
  if (kind === 'audit') return { kind: 'reached', ...seen, connection: connectionIn(members) }
  // The name is null if the ring overwrote it before the flow was saved.
  if (members['name'] === null) return { kind: 'other' }
  return { kind: 'asked', ...seen, name: text(members, 'name') }
}

function seenIn(members: Members, count: number): Seen {
  const first = time(members, 'time')
  const last = members['last'] === undefined ? first : time(members, 'last')
  const node = members['node'] === undefined ? '' : text(members, 'node')
  const endpoint = text(members, 'endpoint')
  const sighting = { count, first, last, endpoint, node }
  return { labels: texts(members, 'endpointLabels').toSorted(), sighting }
}

/** Returns what was denied to which endpoint. For notes only, so a missing member is no fault. */
function deniedIn(members: Members): Omit<Denied, 'kind' | 'count'> {
  const { endpoint, endpointLabels: labels, name, time: first, last = first } = members
  return {
    what: printable(deniedWhat(members)),
    name: typeof name === 'string' ? name : undefined,
    place: placeIn(members),
    last: typeof last === 'string' ? last : '',
    endpoint: typeof endpoint === 'string' ? printable(endpoint) : undefined,
    labels: Array.isArray(labels) ? labels.map(String).toSorted() : [],
  }
}

/** Returns the name that was asked, or the place of the packet with its first name. */
function deniedWhat({ name, names, peer, port, protocol }: Members): string {
  if (typeof name === 'string') return name
  const first: unknown = Array.isArray(names) ? names.at(0) : undefined
  const host = typeof first === 'string' ? first : typeof peer === 'string' ? peer : '?'
  return `${host} ${String(port)}/${String(protocol)}`
}

function placeIn({ peer, port, protocol, names }: Members): Place | undefined {
  if (typeof peer !== 'string' || typeof port !== 'number' || typeof protocol !== 'string') {
    return undefined
  }
  return { address: peer, port, protocol, names: Array.isArray(names) ? names.map(String) : [] }
}

function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?')
}

function connectionIn(members: Members): Connection {
  const address = text(members, 'peer')
  if (parseAddress(address) === undefined) throw wrong(members, 'peer', 'an address')
  return {
    address,
    protocol: text(members, 'protocol'),
    port: whole(members, 'port', 65_535),
    isForbidden: members['deniedBy'] === 'rule',
    names: members['names'] === undefined ? [] : texts(members, 'names'),
    labels: members['labels'] === undefined ? [] : texts(members, 'labels'),
  }
}

type Members = Readonly<Record<string, unknown>>

/** Ends the reading of a line. `parseFlowLine` catches it. */
class WrongMember extends Error {}

function wrong(members: Members, name: string, expected: string): WrongMember {
  const value = members[name]
  const found = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : kindOf(value)
  return new WrongMember(`${name}: found ${found}, expected ${expected}`)
}

function text(members: Members, name: string): string {
  const value = members[name]
  if (typeof value !== 'string') throw wrong(members, name, 'a text')
  // The text is written into comments of a policy, where a control character such as a line break would do harm.
  if (/\p{C}/u.test(value)) throw wrong(members, name, 'a text without control characters')
  return value
}

function texts(members: Members, name: string): readonly string[] {
  const value = members[name]
  if (!Array.isArray(value)) throw wrong(members, name, 'a list of texts')
  return value.map((each: unknown) => text({ [name]: each }, name))
}

function time(members: Members, name: string): string {
  const value = text(members, name)
  if (!TIME.test(value)) throw wrong(members, name, 'a time such as 2026-01-02T03:04:05.678Z')
  return value
}

function whole(members: Members, name: string, max: number): number {
  const value = members[name]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max) {
    return value
  }
  throw wrong(members, name, `a whole number from 0 to ${max}`)
}

function bad(reason: string): FlowLine {
  return { kind: 'bad', reason }
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}
