import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as packet from 'dns-packet'
import { AnswerView } from '../../src/dns/answer.ts'
import { guard } from '../support/guarded.ts'
import { ask, read, www, four, raw, answer, address, chain } from '../support/answers.ts'
import {
  a,
  A,
  ANSWER_FLAGS,
  cname,
  CNAME,
  concat,
  mkAnswer,
  mkMessage,
  opt,
  wireName,
} from '../support/messages.ts'

/** Messages that the client gets as SERVFAIL with EDE 24. */
const malformed: readonly (readonly [reason: string, message: Uint8Array])[] = [
  ['A19: no octet', new Uint8Array(0)],
  ['A30: one octet behind', answer([a(www, four)], { trailing: Uint8Array.of(0) })],
  ['A30: a whole record behind the counts', answer([a(www, four)], { counts: [1, 0, 0, 0] })],
  ['P11: more records announced than there are', answer([a(www, four)], { counts: [1, 2, 0, 0] })],
  ['P11: 65,535 of everything announced', answer([], { counts: [0xffff, 0xffff, 0xffff, 0xffff] })],
  ['A17: owner points to itself', answer([address('', { owner: raw(0xc0, 29) })])],
  ['A17: owner points forward', answer([address('', { owner: raw(0xc0, 60) })])],
  ['A17: owner points into the header', answer([address('', { owner: raw(0xc0, 2) })])],
  ['A17: two steps in a ring', answer([address('', { owner: raw(0xc0, 31, 0xc0, 29) })])],
  ['owner with label type 10', answer([address('', { owner: raw(0x80, 0) })])],
  ['RDLENGTH past the end', answer([address(www, { rdlength: 5 })])],
  [
    'CNAME whose target is shorter than RDLENGTH',
    answer([{ owner: www, type: CNAME, data: concat(wireName('x'), Uint8Array.of(0)) }]),
  ],
  [
    'CNAME whose target is longer than RDLENGTH',
    answer([{ owner: www, type: CNAME, data: { name: raw(1, 0x78) } }, a(www, four)]),
  ],
  [
    'CNAME whose target points to itself',
    answer([{ owner: www, type: CNAME, data: { name: raw(0xc0, 41) } }]),
  ],
  ['CNAME without RDATA', answer([{ owner: www, type: CNAME, data: new Uint8Array(0) }])],
  [
    'a bad owner in the authority section',
    answer([], { authorities: [address('', { owner: raw(0xc0, 60) })] }),
  ],
  [
    'a bad owner in the additional section',
    answer([], { additionals: [address('', { owner: raw(0x40) })] }),
  ],
  ['a bad question name', mkMessage({ flags: ANSWER_FLAGS, questions: [{ name: raw(0xc0, 12) }] })],
  ['longer than a message can be', new Uint8Array(65536)],
]

test('AnswerView.read: malformed messages teach nothing', () => {
  for (const [reason, message] of malformed) {
    const { status, taught } = read(message)
    assert.deepEqual([status, taught], ['malformed', []], reason)
  }
})

test('AnswerView.read: A19: every prefix of an answer is malformed', () => {
  const message = answer([cname(www, 'x.example'), a('x.example', four)], { additionals: [opt()] })
  for (let length = 0; length < message.length; length++) {
    assert.equal(read(message.subarray(0, length)).status, 'malformed', `${length} octets`)
  }
  assert.equal(read(message).status, 'ok')
})

test('AnswerView.read returns header, chain and the places of records', () => {
  const message = answer(
    [
      cname(www, 'x.example', 50),
      a('x.example', four, 60),
      a('x.example', '192.0.2.2', 60),
      a('x.example', four, 70),
    ],
    {
      id: 0xbeef,
      flags: ANSWER_FLAGS | 0x0200,
    },
  )
  const { view } = read(message)
  const {
    id,
    flags,
    rcode,
    truncated,
    qdcount,
    questionMatches,
    chainFault,
    links,
    chainTtl,
    count,
  } = view
  assert.deepEqual(
    { id, flags, rcode, truncated, qdcount, questionMatches, chainFault, links, chainTtl, count },
    {
      id: 0xbeef,
      flags: 0x8380,
      rcode: 0,
      truncated: true,
      qdcount: 1,
      questionMatches: true,
      chainFault: 'none',
      links: 1,
      chainTtl: 50,
      count: 2,
    },
  )
  for (let i = 0; i < 2; i++) {
    // An owner that is one pointer, ten fixed octets, then the address.
    const at = (view.recordOffsets[i] ?? 0) + 12
    assert.deepEqual(message.subarray(at, at + 4), view.octets.subarray(i * 16, i * 16 + 4))
  }
})

test('AnswerView.read names the fault of a chain', () => {
  assert.equal(read(answer([cname(www, www)])).view.chainFault, 'loop')
  assert.equal(read(answer([cname(www, 'x'), cname(www, 'y')])).view.chainFault, 'fork')
  assert.equal(read(answer(chain(17))).view.chainFault, 'long')
})

test('AnswerView.read joins the RCODE of header and OPT', () => {
  assert.equal(
    read(answer([], { flags: ANSWER_FLAGS | 7, additionals: [opt({ extendedRcode: 1 })] })).view
      .rcode,
    23,
  )
})

test('AnswerView.read drops the answer before', () => {
  const view = new AnswerView()
  const first = answer([cname(www, 'x.example'), a('x.example', four)])
  view.read(first, 0, first.length, ask(www))
  assert.equal(view.count, 1)
  assert.equal(view.read(new Uint8Array(3), 0, 3, ask(www)), 'malformed')
  const { count, links, questionMatches, id } = view
  assert.deepEqual(
    { count, links, questionMatches, id },
    { count: 0, links: 0, questionMatches: false, id: 0 },
  )
})

test('AnswerView.read does not trust a pointer because an earlier message had it', () => {
  const view = new AnswerView()
  const first = answer([a('x.example', four), a('x.example', four)])
  const pointer = raw(...first.subarray(first.length - 16, first.length - 14))
  assert.equal(pointer.raw[0], 0xc0, 'the last owner is a pointer')
  assert.equal(view.read(first, 0, first.length, ask(www)), 'ok')
  const second = mkAnswer('y', A, [address('', { owner: pointer })])
  assert.equal(view.read(second, 0, second.length, ask(www)), 'malformed')
})

test('AnswerView.read agrees with dns-packet on chains of well-formed answers', () => {
  const label = fc.stringMatching(/^[a-z0-9-]{1,12}$/)
  const addresses = fc.array(fc.tuple(fc.integer({ min: 1, max: 254 }), fc.nat(100_000)), {
    minLength: 1,
    maxLength: 40,
  })
  fc.assert(
    fc.property(
      fc.uniqueArray(label, { minLength: 1, maxLength: 10 }),
      addresses,
      (labels, hosts) => {
        const names = labels.map((text) => `${text}.example`)
        const [first = ''] = names
        const last = names[names.length - 1] ?? ''
        const links = names
          .slice(1)
          .map((data, i) => ({ type: 'CNAME' as const, name: names[i] ?? '', ttl: 1000 + i, data }))
        const records = hosts.map(([host, ttl]) => ({
          type: 'A' as const,
          name: last,
          ttl,
          data: `198.51.100.${host}`,
        }))
        const octets = packet.encode({
          type: 'response',
          questions: [{ type: 'A', name: first }],
          answers: [...records, ...links],
        })
        const want = new Map<string, number>()
        const linkTtl = links.length === 0 ? Infinity : 1000
        for (const { data, ttl } of records)
          want.set(data, Math.min(want.get(data) ?? Infinity, ttl, linkTtl))
        const { status, taught } = read(octets, ask(first))
        assert.equal(status, 'ok')
        assert.deepEqual(taught, [...want].map(([text, ttl]) => `${text} ${ttl}`).sort())
      },
    ),
  )
})

test('AnswerView.read never reads outside the message nor throws', () => {
  const message = answer([cname(www, 'x.example'), a('x.example', four)], { additionals: [opt()] })
  const view = new AnswerView()
  fc.assert(
    fc.property(
      fc.nat(message.length - 1),
      fc.nat(255),
      fc.nat(message.length),
      (at, octet, cut) => {
        const { buf, offset, length, outside } = guard(message.with(at, octet).subarray(0, cut))
        view.read(buf, offset, length, ask(www))
        const whole = guard(message.with(at, octet))
        view.read(whole.buf, whole.offset, whole.length, ask(www))
        assert.deepEqual([...outside, ...whole.outside], [])
      },
    ),
    { numRuns: 1500 },
  )
})
