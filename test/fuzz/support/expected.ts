// The client's reply and what the node learns, by a naive reading of docs/spec/semantics 4: the octets of local answers, whether a message
// is the answer at all, and the addresses that it teaches with their times.

import { oracle, readLabels } from '../../support/models/oracle.ts'
import type { ReadQuery } from '../../support/models/query-oracle.ts'
import type { Guarded } from './guarded.ts'
import { MAX_TTL, mayAsk, MIN_TTL, UDP_MESSAGE_MAX, type Who } from './world.ts'

export type Fate =
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'silent' }
  /** The daemon itself answers. */
  | { readonly kind: 'local'; readonly rcode: number; readonly ede: number | undefined }

export const SERVFAIL = 2
export const EDE_TIMEOUT = 22
export const EDE_SOCKET = 23
export const EDE_MALFORMED = 24

const local = (rcode: number, ede?: number): Fate => ({ kind: 'local', rcode, ede })
const [FORMERR, NOTIMP, REFUSED, BADVERS] = [1, 4, 5, 16]

/** The treatment of a query before any server is asked. */
export function fateOf(query: Uint8Array, read: ReadQuery, who: Who, overTcp: boolean): Fate {
  const oversized = !overTcp && query.length > UDP_MESSAGE_MAX
  if (read.verdict === 'silent') return { kind: 'silent' }
  if (oversized || read.verdict === 'formerr') return local(FORMERR)
  if (read.verdict === 'notimp') return local(NOTIMP)
  if (read.verdict === 'badvers') return local(BADVERS)
  if (who === 'nobody') return local(REFUSED, 18)
  return mayAsk(who, read.labels) ? { kind: 'forwarded' } : local(REFUSED, 15)
}

/** The daemon's own answer to a well-formed query: the unchanged question, RA, and OPT with EDE if the query had OPT. */
export function localReply(
  query: Uint8Array,
  read: ReadQuery,
  rcode: number,
  ede: number | undefined,
): Buffer {
  const head = Buffer.from(query.subarray(0, read.questionEnd))
  // QR and RA set; opcode, RD and CD kept.
  head.writeUInt16BE((head.readUInt16BE(2) & 0x7910) | 0x8080 | (rcode & 15), 2)
  head.set([0, read.questionEnd > 12 ? 1 : 0, 0, 0, 0, 0, 0, read.opt === undefined ? 0 : 1], 4)
  if (read.opt === undefined) return head
  const options = ede === undefined ? [] : [0, 15, 0, 2, 0, ede]
  const extended = rcode >> 4
  const flags = read.opt.dnssecOk ? 0x80 : 0
  const opt = [0, 0, 41, 0x04, 0xd0, extended, 0, flags, 0, 0, options.length, ...options]
  return Buffer.concat([head, Buffer.from(opt)])
}

/** The reason why `reply` cannot be the local answer to a partly unreadable query. Undefined if it can. */
export function faultOfLooseReply(
  reply: Uint8Array,
  query: Uint8Array,
  rcode: number,
): string | undefined {
  const view = new DataView(reply.buffer, reply.byteOffset, reply.length)
  const asked = new DataView(query.buffer, query.byteOffset, query.length)
  if (reply.length < 12) return 'no header'
  const flags = (asked.getUint16(2) & 0x7910) | 0x8080 | rcode
  if (view.getUint16(0) !== asked.getUint16(0) || view.getUint16(2) !== flags) return 'header'
  if (view.getUint16(4) > 1 || view.getUint32(6) !== 0 || view.getUint16(10) > 1) return 'counts'
  let at = 12
  if (view.getUint16(4) === 1) {
    const name = readLabels(reply, 12)
    if (name === undefined || name.next + 4 > reply.length) return 'question'
    at = name.next + 4
    const same = Buffer.compare(reply.subarray(12, at), query.subarray(12, at)) === 0
    if (!same) return 'question is changed'
  }
  const opt = Buffer.from(reply.subarray(at)).toString('hex')
  const wanted = view.getUint16(10) === 0 ? /^$/ : /^00002904d00000(00|80)000000$/
  return wanted.test(opt) ? undefined : 'OPT'
}

/** The answer reduced to header, question and OPT, for a client that accepts no more over UDP. The RCODE's upper bits are zero. */
export function truncatedReply(query: Uint8Array, read: ReadQuery, answer: Uint8Array): Buffer {
  const reply = localReply(query, read, 0, undefined)
  const flags = Buffer.from(answer).readUInt16BE(2)
  reply.writeUInt16BE(0x8200 | (flags & 0x05bf), 2)
  return reply
}

/** The longest answer over UDP. An answer that arrived over UDP already fits the client's size. */
export function udpLimit(read: ReadQuery, cameOverTcp: boolean): number {
  if (!cameOverTcp) return UDP_MESSAGE_MAX
  return Math.min(Math.max(512, read.opt?.udpSize ?? 512), UDP_MESSAGE_MAX)
}

/** Whether a message with the right id on the right socket is the answer: docs/spec/semantics 4, first paragraph. */
export function isAnswer(message: Uint8Array, read: ReadQuery): boolean {
  if (!hasAnswerHeader(message)) return false
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  const questions = view.getUint16(4)
  if (questions === 0) return ![0, 3].includes(view.getUint8(3) & 15)
  const name = readLabels(message, 12)
  if (questions !== 1 || name === undefined || name.next + 4 > message.length) return false
  return (
    JSON.stringify(name.labels) === JSON.stringify(read.labels) &&
    view.getUint16(name.next) === read.type &&
    view.getUint16(name.next + 2) === read.class
  )
}

/** QR=1 and opcode QUERY. */
export function hasAnswerHeader(message: Uint8Array): boolean {
  return message.length >= 12 && ((message[2] ?? 0) & 0xf8) === 0x80
}

/** The addresses that an accepted message teaches: address -> seconds, clamped. Undefined if it is malformed. */
export function taughtBy(
  message: Uint8Array,
  read: ReadQuery,
  guarded: Pick<Guarded, 'has'>,
): ReadonlyMap<string, number> | undefined {
  const { labels, type } = read
  const verdict = oracle(message, { labels, type, class: read.class })
  if (verdict.kind === 'malformed') return undefined
  const free = [...verdict.taught].filter(([address]) => !guarded.has(address))
  return new Map(free.map(([address, ttl]) => [address, Math.min(Math.max(ttl, MIN_TTL), MAX_TTL)]))
}
