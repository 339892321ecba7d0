// The answers of a scenario's server: reads the lines of UPSTREAM, and makes messages from them octet by octet.
//   NAME TYPE: PART, PART ...
// A part is `CNAME TARGET`, addresses, `HINTS ADDRESS ...` (an HTTPS record), `POOL FIRST COUNT BY N` (each answer has the next N of COUNT
// addresses), an RCODE, `SILENT`, `UNREACHABLE`, `MALFORMED` or `AFTER DURATION`. A part with records can end in `TTL SECONDS`.

import { parseDuration } from '../../../src/core/quantity.ts'
import {
  a,
  AAAA,
  cname,
  https,
  mkAnswer,
  opt,
  service,
  type MkRecord,
} from '../../support/messages.ts'
import { addressAt } from '../../support/peers/zones.ts'
import { octetsOf } from './addresses.ts'
import { blockLines, ScenarioFault, type Step } from './parse.ts'

export const TYPES: Readonly<Record<string, number>> = {
  A: 1,
  CNAME: 5,
  TXT: 16,
  AAAA: 28,
  HTTPS: 65,
  ANY: 255,
}
export const RCODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'] as const
const DEFAULT_TTL = 300
const NOTHING: Answering = { kind: 'answer', delayMs: 0, rcode: 0, malformed: false, parts: [] }

/** The server's reaction to a question. */
export type Reply = { readonly kind: 'silent' } | { readonly kind: 'unreachable' } | Answering

export interface Answering {
  readonly kind: 'answer'
  readonly delayMs: number
  readonly rcode: number
  /** Whether octets follow the last record. */
  readonly malformed: boolean
  readonly parts: readonly Part[]
}

type Part =
  | { readonly kind: 'cname'; readonly target: string; readonly ttl: number }
  | { readonly kind: 'addresses' | 'hints'; readonly list: readonly string[]; readonly ttl: number }
  | { readonly kind: 'pool'; readonly pool: Pool; readonly ttl: number }

interface Pool {
  readonly first: string
  readonly count: number
  readonly by: number
  at: number
}

export class Zone {
  readonly #replies = new Map<string, Reply>()

  /** Adds the lines of a block. A later line for the same name and type replaces the earlier one. */
  add(step: Step): void {
    for (const { place, text } of blockLines(step)) {
      const [, name, type, rest] = /^(\S+)\s+([A-Z]+):\s*(.*)$/.exec(text) ?? []
      if (name === undefined || type === undefined || TYPES[type] === undefined) {
        throw new ScenarioFault(place, `expected NAME TYPE: PART, ..., found ${text}`)
      }
      this.#replies.set(`${name.toLowerCase()} ${TYPES[type]}`, readReply(place, rest ?? ''))
    }
  }

  /** A name without a line does not exist. A name with lines only for other types has no data. */
  replyTo(name: string, type: number): Reply {
    const lower = name.toLowerCase()
    const found = this.#replies.get(`${lower} ${type}`)
    if (found !== undefined) return found
    const exists = [...this.#replies.keys()].some((key) => key.startsWith(`${lower} `))
    return exists ? NOTHING : { ...NOTHING, rcode: RCODES.indexOf('NXDOMAIN') }
  }
}

/** The message that answers a question (its name as labels in their own case). Pools advance. */
export function mkReply(labels: readonly string[], type: number, reply: Answering): Uint8Array {
  let owner: readonly string[] = labels
  const answers: MkRecord[] = []
  for (const part of reply.parts) {
    if (part.kind === 'cname') {
      answers.push(cname(owner, part.target, part.ttl))
      owner = part.target.split('.')
      continue
    }
    if (part.kind === 'hints') {
      answers.push(https(owner, hints(part.list), part.ttl))
      continue
    }
    const list = part.kind === 'pool' ? nextOf(part.pool) : part.list
    for (const text of list) answers.push(addressRecord(owner, text, part.ttl))
  }
  return mkAnswer(labels, type, answers, {
    flags: 0x8180 | reply.rcode,
    additionals: [opt()],
    ...(reply.malformed ? { trailing: Uint8Array.of(1, 2, 3) } : {}),
  })
}

/** RDATA of an HTTPS record with these addresses, IPv4 and IPv6, as hints. */
function hints(list: readonly string[]): Uint8Array {
  const octets = list.map((text) => [...(octetsOf(text) ?? [])])
  const four = octets.filter(({ length }) => length === 4).flat()
  const six = octets.filter(({ length }) => length === 16).flat()
  const params = [
    [1, [2, 104, 50]],
    [4, four],
    [6, six],
  ] as const
  return service(
    1,
    '',
    params.filter(([, value]) => value.length > 0),
  )
}

function addressRecord(owner: readonly string[], text: string, ttl: number): MkRecord {
  const octets = octetsOf(text)
  if (octets === undefined) throw new Error(`not an address: ${text}`)
  return octets.length === 4 ? a(owner, text, ttl) : { owner, type: AAAA, ttl, data: octets }
}

function nextOf(pool: Pool): readonly string[] {
  const start = pool.at
  pool.at = (pool.at + pool.by) % pool.count
  return Array.from({ length: pool.by }, (_, i) => addressAt(pool.first, (start + i) % pool.count))
}

function readReply(place: Step, text: string): Reply {
  let reply = NOTHING
  for (const words of text.split(',').map((part) => part.trim().split(/\s+/))) {
    const [first = '', second = ''] = words
    const rcode = RCODES.findIndex((name) => name === first)
    const delayMs = first === 'AFTER' ? parseDuration(second) : undefined
    if (first === 'SILENT') return { kind: 'silent' }
    if (first === 'UNREACHABLE') return { kind: 'unreachable' }
    if (first === 'MALFORMED') reply = { ...reply, malformed: true }
    else if (rcode >= 0) reply = { ...reply, rcode }
    else if (delayMs !== undefined) reply = { ...reply, delayMs }
    else reply = { ...reply, parts: [...reply.parts, readPart(place, words)] }
  }
  return reply
}

function readPart(place: Step, words: readonly string[]): Part {
  const at = words.indexOf('TTL')
  const ttl = at < 0 ? DEFAULT_TTL : Number(words[at + 1])
  const given = at < 0 ? words : words.slice(0, at)
  const [first = '', second = '', count = '', by = '', each = ''] = given
  if (!Number.isInteger(ttl) || ttl < 0 || ttl >= 2 ** 32) return fail(place, words.join(' '))
  if (first === 'CNAME' && given.length === 2) return { kind: 'cname', target: second, ttl }
  if (first === 'POOL' && by === 'BY' && given.length === 5) {
    return {
      kind: 'pool',
      pool: { first: second, count: Number(count), by: Number(each), at: 0 },
      ttl,
    }
  }
  if (first === 'HINTS') return { kind: 'hints', list: readAddresses(place, given.slice(1)), ttl }
  return { kind: 'addresses', list: readAddresses(place, given), ttl }
}

function readAddresses(place: Step, words: readonly string[]): readonly string[] {
  return words.every((text) => octetsOf(text) !== undefined) ? words : fail(place, words.join(' '))
}

function fail(place: Step, text: string): never {
  throw new ScenarioFault(place, `expected records, a pool, an RCODE or a fault, found ${text}`)
}
