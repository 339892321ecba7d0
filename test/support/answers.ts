// Reads answers for the tests of AnswerView: the question is www.example, and the taught addresses are texts.

import { formatAddress } from '../../src/core/ip.ts'
import { AnswerView, type AnswerStatus } from '../../src/dns/answer.ts'
import type { Question } from '../../src/dns/query.ts'
import {
  a,
  A,
  cname,
  concat,
  mkAnswer,
  wireName,
  type MkMessage,
  type MkRecord,
} from './messages.ts'
import { oracle } from './models/oracle.ts'

export function ask(name: string | readonly string[], qtype = A, qclass = 1): Question {
  const wire = wireName(name)
  return { name: wire, nameLength: wire.length, qtype, qclass }
}

export interface Result {
  readonly status: AnswerStatus
  readonly view: AnswerView
  /** `ADDRESS TTL`, sorted. */
  readonly taught: readonly string[]
}

export function read(message: Uint8Array, question = ask('www.example')): Result {
  const view = new AnswerView()
  const slab = concat(Uint8Array.of(9, 9), message, new Uint8Array(40))
  const status = view.read(slab, 2, message.length, question)
  return { status, view, taught: list(view) }
}

function list(view: AnswerView): string[] {
  const taught: string[] = []
  for (let i = 0; i < view.count; i++) {
    const address = formatAddress(view.families[i] === 4 ? 4 : 6, view.octets, i * 16)
    taught.push(`${address} ${view.ttls[i]}`)
  }
  return taught.sort()
}

export const www = 'www.example'
export const four = '192.0.2.1'
export const raw = (...octets: number[]) => ({ raw: Uint8Array.from(octets) })
export const answer = (answers: readonly MkRecord[], change: MkMessage = {}, type = A) =>
  mkAnswer(www, type, answers, change)
export const address = (owner: string, change: Partial<MkRecord> = {}): MkRecord => ({
  ...a(owner, four),
  ...change,
})

/** `links` CNAMEs from www.example, then an address. */
export function chain(links: number): MkRecord[] {
  const name = (i: number) => (i === 0 ? www : `n${i}.example`)
  const records = Array.from({ length: links }, (_, i) => cname(name(i), name(i + 1), 100))
  return [...records, a(name(links), four, 100)]
}

/** What the message teaches by the oracle, in the same form. */
export function oracleTaught(message: Uint8Array, question: Question): readonly string[] {
  const labels: string[] = []
  for (let at = 0; question.name[at] !== 0; at += (question.name[at] ?? 0) + 1) {
    const octets = question.name.subarray(at + 1, at + 1 + (question.name[at] ?? 0))
    labels.push(Buffer.from(octets).toString('latin1'))
  }
  const want = oracle(message, { labels, type: question.qtype, class: question.qclass })
  if (want.kind === 'malformed') return ['malformed']
  return [...want.taught].map(([text, ttl]) => `${text} ${ttl}`).sort()
}
