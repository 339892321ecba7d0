// docs/spec/correctness 2, A12, A13, A15, A17-A20, A23, A30, A33: odd, large, truncated and hostile messages, one exchange each.

import { FORMERR, QR, SERVFAIL, TC } from '../lab/replies.ts'
import { answerTo, labelsOfQuestion } from '../lab/upstream.ts'
import { ask, askOpt, bytes, COOKIE, options, own, ownRecord, sized, TXT } from './build.ts'
import { questionEnd } from './malformed.ts'
import type { Asking, Row } from './row.ts'
import { a, ANSWER_FLAGS, opt, QUERY_FLAGS, type MkRecord } from '../../support/messages.ts'

const INVALID = { rcode: SERVFAIL, ede: 24 }
const MANY_ADDRESSES = 4000
const MANY_NAMES = 3500
const MANY_OPTIONS = 16_000

/** Owners of an answer's record that are not names. */
const POINTERS: readonly (readonly [what: string, at: (end: number) => readonly number[]])[] = [
  ['to itself', (end) => [0xc0, end]],
  ['to one that points back', (end) => [0xc0, end + 2, 0xc0, end]],
  ['forward', (end) => [0xc0, end + 4]],
  ['past the end', () => [0xff, 0xff]],
  ['into the header', () => [0xc0, 4]],
]

export const MESSAGES: readonly Row[] = [
  {
    kind: 'exchange',
    id: 'A12',
    what: 'an answer of 4 KB arrives by TC and TCP; the client’s UDP size passes unchanged',
    note: 'docs/spec/semantics 4: messages pass byte for byte, so the server sees the client’s own UDP size',
    query: (name) => askOpt(name, { udpSize: 1232 }),
    answer: (asking) =>
      asking.transport === 'udp'
        ? [answerTo(asking, { flags: ANSWER_FLAGS | TC, additionals: [opt()] })]
        : [sized(asking, 4096, [opt()])],
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'A13',
    what: 'namegate does not follow names: a CNAME alone passes, and no further query is sent',
    query: (name) => ask(name),
    answer: (asking) => [
      own(asking, {
        answers: [{ owner: asking.question.name, type: 5, data: { name: 'far.ok.test' } }],
        authorities: [{ owner: 'ok.test', type: 2, data: { name: 'ns.ok.test' } }],
      }),
    ],
    allowed: 'passes',
  },
  {
    kind: 'tests',
    id: 'A13',
    what: 'a silent server gets at most three packets per query',
    note: 'the rows of 1.11 and A4 count them over the wire',
    tests: [['test/proxy/upstream/attempts.test.ts', 'Upstream sends at most three packets']],
  },
  {
    kind: 'exchange',
    id: 'A15',
    what: 'the case of a name reaches the server and returns as the client wrote it',
    query: (name) => ask(name.map((label, i) => (i % 2 === 0 ? label.toUpperCase() : label))),
    allowed: 'passes',
    teaches: true,
  },
  ...POINTERS.map(([what, at]): Row => ({
    kind: 'exchange',
    id: 'A17',
    what: `an owner that points ${what}: SERVFAIL, EDE 24`,
    query: (name) => askOpt(name),
    answer: (asking) => [pointing(asking, at)],
    allowed: INVALID,
    teaches: false,
  })),
  {
    kind: 'tests',
    id: 'A17',
    what: 'deep chains over thousands of records are read in time',
    tests: [
      ['test/dns/answer-cost.test.ts', 'A17, A18, A20'],
      ['test/dns/wire.test.ts', 'readName follows as many pointers as are allowed'],
    ],
  },
  {
    kind: 'exchange',
    id: 'A18',
    what: `64 KB with ${MANY_NAMES} names pass over TCP`,
    query: (name) => ask(name),
    answer: (asking) => [
      own(asking, {
        answers: Array.from({ length: MANY_NAMES }, (_, i): MkRecord => {
          const owner = [String(i).padStart(4, '0'), ...labelsOfQuestion(asking.question)]
          return { owner, type: TXT, data: new Uint8Array(0) }
        }),
      }),
    ],
    over: ['tcp'],
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'A20',
    what: 'a TXT answer of 65,535 octets passes over TCP',
    query: (name) => ask(name),
    answer: (asking) => [sized(asking, 65_535)],
    over: ['tcp'],
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'A20',
    what: `${MANY_ADDRESSES} A records pass over TCP and teach`,
    query: (name) => ask(name),
    answer: (asking) => [
      own(asking, {
        answers: [
          ownRecord(asking),
          ...Array.from({ length: MANY_ADDRESSES - 1 }, (_, i) =>
            a(asking.question.name, `198.19.${100 + (i >> 8)}.${i & 255}`),
          ),
        ],
      }),
    ],
    over: ['tcp'],
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'exchange',
    id: 'A20',
    what: `${MANY_OPTIONS} empty options in a query over TCP pass`,
    query: (name) => askOpt(name, { options: new Uint8Array(MANY_OPTIONS * 4) }),
    over: ['tcp'],
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'A20',
    what: 'COOKIE over and over passes',
    query: (name) =>
      askOpt(name, { options: options(...Array.from({ length: 30 }, () => [COOKIE, 8] as const)) }),
    allowed: 'passes',
  },
  silent('A23', 'a query with QR=1', QR | QUERY_FLAGS),
  silent('A23', 'an answer without a query', ANSWER_FLAGS),
  {
    kind: 'exchange',
    id: 'A30',
    what: 'octets after the last record of a query: FORMERR, even if they have an allowed name',
    query: (name) => ask(name, { trailing: Uint8Array.of(1, 0x61, 0, 0, 1, 0, 1) }),
    allowed: { rcode: FORMERR },
    refused: { rcode: FORMERR },
  },
  {
    kind: 'exchange',
    id: 'A30',
    what: 'a record after the last counted one: SERVFAIL, EDE 24',
    query: (name) => askOpt(name),
    answer: (asking) => [own(asking, { counts: [1, 0, 0, 0] })],
    allowed: INVALID,
    teaches: false,
  },
  ...sameVerdict(),
]

function silent(id: string, what: string, flags: number): Row {
  return {
    kind: 'exchange',
    id,
    what: `${what} gets nothing`,
    query: (name) => ask(name, { flags }),
    allowed: 'silence',
    refused: 'silence',
    inEveryMode: true,
  }
}

function pointing(asking: Asking, at: (end: number) => readonly number[]): Uint8Array {
  const raw = Uint8Array.from(at(questionEnd(asking)))
  return own(asking, { answers: [{ owner: { raw }, type: 1, data: bytes(4) }] })
}

/** A33: the same labels get the same verdict in every form of the question. */
function sameVerdict(): readonly Row[] {
  const forms: readonly (readonly [
    what: string,
    name: (name: readonly string[]) => readonly string[],
    opt?: true,
  ])[] = [
    ['in capitals', (name) => name.map((label) => label.toUpperCase())],
    ['with EDNS', (name) => name, true],
    ['with labels of 63 octets', (name) => ['x'.repeat(63), 'y'.repeat(63), ...name]],
    ['of 255 octets', longest],
    ['with a label as IDN has it', (name) => ['xn--bcher-kva', ...name]],
  ]
  return forms.map(([what, form, withOpt]) => ({
    kind: 'exchange',
    id: 'A33',
    what: `a name ${what} gets its verdict, the same over UDP and TCP`,
    query: (name) => (withOpt === true ? askOpt(form(name)) : ask(form(name))),
    allowed: 'passes',
    teaches: true,
  }))
}

/** Puts labels before the name until it has 255 octets. */
function longest(name: readonly string[]): readonly string[] {
  const size = name.reduce((sum, label) => sum + label.length + 1, 1)
  let free = 255 - size
  const more: string[] = []
  while (free > 1) {
    const length = Math.min(63, free - 1)
    // Leaves no rest of one octet, because no label has this size.
    const take = free - length - 1 === 1 ? length - 1 : length
    more.push('z'.repeat(take))
    free -= take + 1
  }
  return [...more, ...name]
}
