import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as packet from 'dns-packet'
import { EDE_TEXT_MAX, LOCAL, type LocalAnswer } from '../../src/dns/codes.ts'
import { MessageView } from '../../src/dns/message-view.ts'
import { QueryView } from '../../src/dns/query.ts'
import { LOCAL_ANSWER_MAX, writeLocalAnswer, writeTruncated } from '../../src/dns/reply.ts'
import {
  a,
  A,
  AAAA,
  ANSWER_FLAGS,
  concat,
  mkAnswer,
  mkMessage,
  mkQuery,
  opt,
  option,
  text,
  type MkMessage,
  type MkRecord,
} from '../support/messages.ts'

const BEFORE = 6

/** The local answer to a query somewhere in a slab. */
function reply(query: Uint8Array, answer: LocalAnswer): Uint8Array {
  const view = new QueryView()
  const slab = concat(new Uint8Array(BEFORE), query)
  view.read(slab, BEFORE, query.length)
  const out = new Uint8Array(LOCAL_ANSWER_MAX + 20).fill(0xaa)
  const written = new MessageView().set(out, 10, 0)
  writeLocalAnswer(written, new MessageView().set(slab, BEFORE, query.length), view, answer)
  const { length } = written
  assert.ok(length <= LOCAL_ANSWER_MAX)
  assert.equal(out[9], 0xaa)
  assert.equal(out[10 + length], 0xaa)
  return out.slice(10, 10 + length)
}

const name = ['wWw', 'eXample']
const query = (additionals: readonly MkRecord[] = [], change: MkMessage = {}) =>
  mkQuery(name, AAAA, { id: 0xabcd, additionals, ...change })
const question = { name, type: AAAA }
const ede = (code: number, words = '') => option(15, concat(Uint8Array.of(0, code), text(words)))

const rows: readonly (readonly [
  reason: string,
  query: Uint8Array,
  answer: LocalAnswer,
  want: MkMessage,
])[] = [
  ['E1: no OPT, no EDE', query(), LOCAL.deniedRefused, { flags: 0x8185, questions: [question] }],
  [
    'E2: OPT with EDE 15',
    query([opt()]),
    LOCAL.deniedRefused,
    { flags: 0x8185, questions: [question], additionals: [opt({ options: ede(15) })] },
  ],
  [
    'deny-response: nxdomain',
    query([opt()]),
    LOCAL.deniedNxdomain,
    { flags: 0x8183, questions: [question], additionals: [opt({ options: ede(15) })] },
  ],
  [
    'deny-response: nodata',
    query([opt()]),
    LOCAL.deniedNodata,
    { flags: 0x8180, questions: [question], additionals: [opt({ options: ede(15) })] },
  ],
  [
    'EDE 18',
    query([opt()]),
    LOCAL.serverProhibited,
    { flags: 0x8185, questions: [question], additionals: [opt({ options: ede(18) })] },
  ],
  [
    'EDE 14',
    query([opt()]),
    LOCAL.notReady,
    { flags: 0x8182, questions: [question], additionals: [opt({ options: ede(14) })] },
  ],
  [
    'EDE 22',
    query([opt()]),
    LOCAL.upstreamTimeout,
    { flags: 0x8182, questions: [question], additionals: [opt({ options: ede(22) })] },
  ],
  [
    'EDE 23',
    query([opt()]),
    LOCAL.upstreamSocket,
    { flags: 0x8182, questions: [question], additionals: [opt({ options: ede(23) })] },
  ],
  [
    'EDE 24',
    query([opt()]),
    LOCAL.answerMalformed,
    { flags: 0x8182, questions: [question], additionals: [opt({ options: ede(24) })] },
  ],
  [
    'EDE 0 and text',
    query([opt()]),
    LOCAL.overloaded,
    { flags: 0x8182, questions: [question], additionals: [opt({ options: ede(0, 'overloaded') })] },
  ],
  [
    'E13: RD=0, CD=1; AD and Z not set by us',
    query([], { flags: 0x0070 }),
    LOCAL.deniedRefused,
    { flags: 0x8095, questions: [question] },
  ],
  [
    'E13: DO is copied',
    query([opt({ flags: 0x8000 })]),
    LOCAL.deniedRefused,
    {
      flags: 0x8185,
      questions: [question],
      additionals: [opt({ flags: 0x8000, options: ede(15) })],
    },
  ],
  [
    'E6: other EDNS flags are 0',
    query([opt({ flags: 0x7fff })]),
    LOCAL.deniedRefused,
    { flags: 0x8185, questions: [question], additionals: [opt({ options: ede(15) })] },
  ],
  [
    'E5: options are not echoed; E10: own size',
    query([opt({ udpSize: 4096, options: option(10, new Uint8Array(8)) })]),
    LOCAL.deniedRefused,
    { flags: 0x8185, questions: [question], additionals: [opt({ options: ede(15) })] },
  ],
  [
    'E4: BADVERS with version 0',
    query([opt({ version: 7 })]),
    LOCAL.badVersion,
    { flags: 0x8180, questions: [question], additionals: [opt({ extendedRcode: 1 })] },
  ],
  [
    'E8: FORMERR with OPT',
    query([opt({ options: option(1, new Uint8Array(0), 4) })]),
    LOCAL.queryMalformed,
    { flags: 0x8181, questions: [question], additionals: [opt()] },
  ],
  [
    'Q1: two questions: neither is repeated',
    query([], { questions: [question, question] }),
    LOCAL.queryMalformed,
    { flags: 0x8181 },
  ],
  [
    'an unreadable question is not repeated',
    query([], { questions: [{ name: { raw: Uint8Array.of(0xc0, 12) } }] }),
    LOCAL.queryMalformed,
    { flags: 0x8181 },
  ],
  [
    'a header alone, with wrong counts',
    mkMessage({ id: 0xabcd, flags: 0x0100, counts: [1, 0, 0, 0] }),
    LOCAL.queryMalformed,
    { flags: 0x8181 },
  ],
  [
    'Q2: no question',
    mkMessage({ id: 0xabcd, flags: 0x0100, additionals: [opt()] }),
    LOCAL.notImplemented,
    { flags: 0x8184, additionals: [opt()] },
  ],
  [
    'the opcode is repeated',
    query([], { flags: 0x7900 }),
    LOCAL.notImplemented,
    { flags: 0xf984, questions: [question] },
  ],
]

test('writeLocalAnswer writes the local answers of docs/spec/semantics 4', () => {
  for (const [reason, asked, answer, want] of rows) {
    assert.deepEqual(reply(asked, answer), mkMessage({ id: 0xabcd, ...want }), reason)
  }
})

test('writeLocalAnswer: A19: every prefix of a query from 12 octets on gets a readable answer', () => {
  const asked = query([opt({ options: option(10, new Uint8Array(8)) })])
  for (let length = 12; length < asked.length; length++) {
    const decoded = packet.decode(
      Buffer.from(reply(asked.subarray(0, length), LOCAL.queryMalformed)),
    )
    assert.deepEqual(
      [decoded.id, decoded.flag_qr, (decoded.flags ?? 0) & 15],
      [0xabcd, true, 1],
      `${length} octets`,
    )
  }
})

test('writeLocalAnswer fits 512 octets with the longest name and text', () => {
  const long = ['x'.repeat(63), 'x'.repeat(63), 'x'.repeat(63), 'x'.repeat(61)]
  const answer = { rcode: 2, ede: 0, text: new Uint8Array(EDE_TEXT_MAX).fill(0x61) }
  const octets = reply(mkQuery(long, A, { id: 0xabcd, additionals: [opt()] }), answer)
  assert.equal(octets.length, 488)
})

test('LOCAL has no text longer than the bound', () => {
  for (const { text: words } of Object.values(LOCAL)) assert.ok(words.length <= EDE_TEXT_MAX)
})

function truncated(asked: Uint8Array, answer: Uint8Array, rcode: number): Uint8Array {
  const view = new QueryView()
  view.read(asked, 0, asked.length)
  const out = MessageView.of(new Uint8Array(LOCAL_ANSWER_MAX))
  const slab = concat(new Uint8Array(BEFORE), answer)
  const full = new MessageView().set(slab, BEFORE, answer.length)
  writeTruncated(out, MessageView.of(asked), view, full, rcode)
  return out.octets.slice(0, out.length)
}

test('writeTruncated: E11, P5: gives header, question and OPT with TC=1', () => {
  const full = (flags: number) =>
    mkAnswer('www.example', AAAA, [a('www.example', '192.0.2.1')], { flags, id: 1 })
  const cases: readonly (readonly [reason: string, got: Uint8Array, want: MkMessage])[] = [
    [
      'with OPT',
      truncated(query([opt({ udpSize: 512, flags: 0x8000 })]), full(ANSWER_FLAGS), 0),
      { flags: 0x8380, questions: [question], additionals: [opt({ flags: 0x8000 })] },
    ],
    [
      'E1: without OPT',
      truncated(query(), full(ANSWER_FLAGS), 0),
      { flags: 0x8380, questions: [question] },
    ],
    [
      'E13: AA, AD, CD of the answer stay',
      truncated(query(), full(0x85f3), 3),
      { flags: 0x87b3, questions: [question] },
    ],
    [
      'an extended RCODE',
      truncated(query([opt()]), full(ANSWER_FLAGS | 7), 23),
      { flags: 0x8387, questions: [question], additionals: [opt({ extendedRcode: 1 })] },
    ],
  ]
  for (const [reason, got, want] of cases)
    assert.deepEqual(got, mkMessage({ id: 0xabcd, ...want }), reason)
})
