// docs/spec/correctness 1.1, P11: messages that cannot be read as DNS, from a client and from the server.

import { FORMERR, SERVFAIL } from '../lab/replies.ts'
import { ask, askOpt, bytes, own } from './build.ts'
import type { Asking, Row } from './row.ts'
import { wireName, type MkMessage } from '../../support/messages.ts'

const MALFORMED = { rcode: FORMERR }
const INVALID = { rcode: SERVFAIL, ede: 24 }

export const MALFORMED_QUERIES = malformedQueries()
export const MALFORMED_ANSWERS = malformedAnswers()

function malformedQueries(): readonly Row[] {
  const rows: readonly (readonly [
    what: string,
    query: (name: readonly string[]) => MkMessage,
    more?: object,
  ])[] = [
    ['a name that points to itself', () => rawName([0xc0, 12])],
    ['a name that points into the header', () => rawName([0xc0, 4])],
    ['a name that points forward', () => rawName([1, 0x61, 0xc0, 20])],
    ['a label of 64 octets', () => rawName([64, ...bytes(64), 0])],
    [
      'a name of more than 255 octets',
      (name) =>
        rawName([
          ...wireName(Array.from({ length: 5 }, () => 'x'.repeat(62))).slice(0, -1),
          ...wireName(name),
        ]),
    ],
    ['a missing record', (name) => ask(name, { counts: [1, 1, 0, 0] })],
    ['an octet after the last record', (name) => ask(name, { trailing: Uint8Array.of(0) })],
  ]
  return rows.map(([what, query]) => {
    const hasName = /missing|after/.test(what)
    return {
      kind: 'exchange',
      id: 'P11',
      what: `a query with ${what} gets FORMERR`,
      query,
      allowed: { ...MALFORMED, question: hasName },
      refused: { ...MALFORMED, question: hasName },
    }
  })
}

function rawName(octets: readonly number[]) {
  return ask([], { questions: [{ name: { raw: Uint8Array.from(octets) } }] })
}

function malformedAnswers(): readonly Row[] {
  const rows: readonly (readonly [what: string, change: (seen: Asking) => Uint8Array])[] = [
    ['trailing octets', (asking) => own(asking, { trailing: bytes(1) })],
    ['a missing record', (asking) => own(asking, { counts: [1, 2, 0, 0] })],
    [
      'an owner that points to itself',
      (asking) =>
        own(asking, {
          answers: [
            { owner: { raw: Uint8Array.of(0xc0, questionEnd(asking)) }, type: 1, data: bytes(4) },
          ],
        }),
    ],
    [
      'RDATA past the end',
      (asking) =>
        own(asking, {
          answers: [{ owner: asking.question.name, type: 1, data: bytes(4), rdlength: 5 }],
        }),
    ],
    [
      'a CNAME whose name does not fill its RDATA',
      (asking) =>
        own(asking, {
          answers: [{ owner: asking.question.name, type: 5, data: Uint8Array.of(0, 0) }],
        }),
    ],
  ]
  return rows.map(([what, change]) => ({
    kind: 'exchange',
    id: 'P11',
    what: `an answer with ${what} becomes SERVFAIL, EDE 24`,
    query: (name) => askOpt(name),
    answer: (asking) => [change(asking)],
    allowed: INVALID,
    teaches: false,
  }))
}

/** The number of octets of header and question. */
export function questionEnd({ octets }: Pick<Asking, 'octets'>): number {
  let at = 12
  while (octets.readUInt8(at) !== 0) at += 1 + octets.readUInt8(at)
  return at + 5
}
