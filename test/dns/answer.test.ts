import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as packet from 'dns-packet'
import { formatAddress } from '../../src/core/ip.ts'
import { AnswerView, type AnswerStatus } from '../../src/dns/answer.ts'
import type { Question } from '../../src/dns/query.ts'
import { guard } from '../support/guarded.ts'
import {
  a,
  A,
  AAAA,
  aaaa,
  ANSWER_FLAGS,
  cname,
  CNAME,
  concat,
  DNAME,
  mkAnswer,
  mkMessage,
  opt,
  wireName,
  type MkMessage,
  type MkRecord,
} from '../support/messages.ts'
import { oracle } from '../support/oracle.ts'

const SEED = 0x5eed

function ask(name: string | readonly string[], qtype = A, qclass = 1): Question {
  const wire = wireName(name)
  return { name: wire, nameLength: wire.length, qtype, qclass }
}

interface Result {
  readonly status: AnswerStatus
  readonly view: AnswerView
  /** `ADDRESS TTL`, sorted. */
  readonly taught: readonly string[]
}

function read(message: Uint8Array, question = ask('www.example')): Result {
  const view = new AnswerView(SEED)
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

const www = 'www.example'
const four = '192.0.2.1'
const raw = (...octets: number[]) => ({ raw: Uint8Array.from(octets) })
const answer = (answers: readonly MkRecord[], change: MkMessage = {}, type = A) =>
  mkAnswer(www, type, answers, change)
const address = (owner: string, change: Partial<MkRecord> = {}): MkRecord => ({
  ...a(owner, four),
  ...change,
})

/** `links` CNAMEs from www.example, then an address. */
function chain(links: number): MkRecord[] {
  const name = (i: number) => (i === 0 ? www : `n${i}.example`)
  const records = Array.from({ length: links }, (_, i) => cname(name(i), name(i + 1), 100))
  return [...records, a(name(links), four, 100)]
}

/** A7 and its neighbours: each alone teaches nothing, and the message passes. */
const silent: readonly (readonly [reason: string, message: Uint8Array, question?: Question])[] = [
  ['A7: foreign owner in the answer section', answer([address('other.example')])],
  ['A7: a name below the question name', answer([address('a.www.example')])],
  ['A7: a name above the question name', answer([address('example')])],
  [
    'A9: the same dotted text in other labels',
    mkAnswer(['www.example'], A, [a(['www.example'], four)]),
  ],
  [
    'A9: an owner with the same dotted text in other labels',
    answer([{ ...a(['www.example'], four) }]),
  ],
  [
    'A7: foreign owner in the authority section',
    answer([], { authorities: [address('ns.example')] }),
  ],
  ['A7: the question name in the authority section', answer([], { authorities: [address(www)] })],
  ['A7: the question name in the additional section', answer([], { additionals: [address(www)] })],
  [
    'A7: glue with MX',
    answer(
      [{ owner: www, type: 15, data: concat(Uint8Array.of(0, 1), wireName('mx.example')) }],
      { additionals: [address('mx.example')] },
      15,
    ),
    ask(www, 15),
  ],
  [
    'A7: glue with NS',
    answer(
      [{ owner: www, type: 2, data: { name: 'ns.example' } }],
      { additionals: [address('ns.example')] },
      2,
    ),
    ask(www, 2),
  ],
  [
    'A7: glue with SRV',
    answer(
      [{ owner: www, type: 33, data: concat(new Uint8Array(6), wireName('s.example')) }],
      { additionals: [address('s.example')] },
      33,
    ),
    ask(www, 33),
  ],
  ['A7: class CH of the record', answer([address(www, { class: 3 })])],
  ['A7: class ANY of the record', answer([address(www, { class: 255 })])],
  [
    'A7: class CH of the question',
    mkMessage({
      flags: ANSWER_FLAGS,
      questions: [{ name: www, class: 3 }],
      answers: [address(www)],
    }),
    ask(www, A, 3),
  ],
  ...[1, 2, 3, 4, 5, 15].map(
    (rcode) =>
      [`A7: RCODE ${rcode}`, answer([address(www)], { flags: ANSWER_FLAGS | rcode })] as const,
  ),
  [
    'A7: RCODE 16, told by OPT',
    answer([address(www)], { additionals: [opt({ extendedRcode: 1 })] }),
  ],
  [
    'A7: RCODE told by the second of two OPT',
    answer([address(www)], { additionals: [opt(), opt({ extendedRcode: 1 })] }),
  ],
  ['A7: RRSIG only', answer([{ owner: www, type: 46, data: new Uint8Array(40) }])],
  ['A7: CNAME to X with A for Y', answer([cname(www, 'x.example'), address('y.example')])],
  ['A7: CNAME to the name itself', answer([cname(www, www), address(www)])],
  [
    'A7: a loop of two',
    answer([cname(www, 'x.example'), cname('x.example', www), address(www), address('x.example')]),
  ],
  [
    'A7: a loop of three',
    answer([
      cname(www, 'x.example'),
      cname('x.example', 'y.example'),
      cname('y.example', 'x.example'),
      address('y.example'),
    ]),
  ],
  [
    'two different CNAMEs at the question name',
    answer([cname(www, 'x.example'), cname(www, 'y.example'), address('x.example')]),
  ],
  [
    'two different CNAMEs in the middle',
    answer([
      cname(www, 'x.example'),
      cname('x.example', 'y.example'),
      cname('x.example', 'z.example'),
      address(www),
    ]),
  ],
  ['A7: 17 links', answer(chain(17))],
  ['A7: 17 links, the address at the question name', answer([...chain(17), address(www)])],
  ...[0, 3, 5, 16].map(
    (size) =>
      [`A7: A of ${size} octets`, answer([address(www, { data: new Uint8Array(size) })])] as const,
  ),
  ...[0, 4, 15, 17].map(
    (size) =>
      [
        `A7: AAAA of ${size} octets`,
        answer([address(www, { type: AAAA, data: new Uint8Array(size) })]),
      ] as const,
  ),
  [
    'DNAME without its synthesised CNAME',
    answer([{ owner: 'example', type: DNAME, data: { name: 'net' } }, address('www.net')]),
  ],
  ['CNAME of class CH', answer([{ ...cname(www, 'x.example'), class: 3 }, address('x.example')])],
  [
    'CNAME in the authority section',
    answer([address('x.example')], { authorities: [cname(www, 'x.example')] }),
  ],
  ['Q3: no question', mkMessage({ flags: ANSWER_FLAGS, answers: [address(www)] })],
  [
    'two questions',
    mkMessage({
      flags: ANSWER_FLAGS,
      questions: [{ name: www }, { name: www }],
      answers: [address(www)],
    }),
  ],
  ['F1: another name asked', answer([address(www)]), ask('wwx.example')],
  ['F1: another type asked', answer([address(www)]), ask(www, AAAA)],
  ['QR=0', answer([address(www)], { flags: 0x0100 })],
  ['opcode NOTIFY', answer([address(www)], { flags: ANSWER_FLAGS | 0x2000 })],
  [
    'SVCB hints, which a later issue reads',
    answer(
      [{ owner: www, type: 65, data: Uint8Array.of(0, 1, 0, 0, 4, 0, 4, 192, 0, 2, 1) }],
      {},
      65,
    ),
    ask(www, 65),
  ],
]

test('AnswerView.read: A7: what teaches nothing', () => {
  for (const [reason, message, question] of silent) {
    const { status, taught } = read(message, question)
    assert.deepEqual([status, taught], ['ok', []], reason)
  }
})

const v6 = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]
const mapped = [0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201]

const teaching: readonly (readonly [
  reason: string,
  message: Uint8Array,
  taught: readonly string[],
  question?: Question,
])[] = [
  ['an address', answer([a(www, four, 60)]), ['192.0.2.1 60']],
  [
    'an address, names without compression',
    answer([a(www, four, 60)], { compress: false }),
    ['192.0.2.1 60'],
  ],
  [
    'A and AAAA, whatever was asked',
    answer([a(www, four, 60), aaaa(www, v6, 70)]),
    ['192.0.2.1 60', '2001:db8::1 70'],
  ],
  ['owner in another case', answer([a('WwW.eXample', four, 60)]), ['192.0.2.1 60']],
  ['question in another case', mkAnswer('WWW.example', A, [a(www, four, 60)]), ['192.0.2.1 60']],
  ['A7: QTYPE ANY', mkAnswer(www, 255, [a(www, four, 60)]), ['192.0.2.1 60'], ask(www, 255)],
  [
    'A7: TC=1 teaches what it carries',
    answer([a(www, four, 60)], { flags: ANSWER_FLAGS | 0x0200 }),
    ['192.0.2.1 60'],
  ],
  [
    'A7: the address before the chain',
    answer([a('y.example', four), cname('x.example', 'y.example'), cname(www, 'x.example')]),
    ['192.0.2.1 300'],
  ],
  [
    'A7: DNAME with its synthesised CNAME',
    answer([
      { owner: 'example', type: DNAME, data: { name: 'net' } },
      cname(www, 'www.net', 0),
      a('www.net', four),
    ]),
    ['192.0.2.1 0'],
  ],
  ['16 links', answer(chain(16)), ['192.0.2.1 100']],
  [
    'a foreign loop is none of the chain’s',
    answer([cname('x.example', 'x.example'), a(www, four)]),
    ['192.0.2.1 300'],
  ],
  [
    'the same CNAME twice is one',
    answer([cname(www, 'x.example', 50), cname(www, 'X.example', 40), a('x.example', four)]),
    ['192.0.2.1 40'],
  ],
  [
    'addresses at several names of the chain',
    answer([a(www, four, 300), cname(www, 'x.example', 20), a('x.example', '192.0.2.2', 300)]),
    ['192.0.2.1 300', '192.0.2.2 20'],
  ],
  [
    'the same address twice: least TTL',
    answer([a(www, four, 60), a(www, four, 30), a(www, four, 90)]),
    ['192.0.2.1 30'],
  ],
  ['IPv4-mapped IPv6 is IPv4', answer([aaaa(www, mapped, 60), a(www, four, 70)]), ['192.0.2.1 60']],
  ['L1: TTL 0', answer([a(www, four, 0)]), ['192.0.2.1 0']],
  ['L2: TTL 2^31-1', answer([a(www, four, 0x7fffffff)]), ['192.0.2.1 2147483647']],
  ['L2: TTL 2^31 counts as 0', answer([a(www, four, 0x80000000)]), ['192.0.2.1 0']],
  [
    'L2: TTL 2^32-1 of a link counts as 0',
    answer([cname(www, 'x.example', 0xffffffff), a('x.example', four)]),
    ['192.0.2.1 0'],
  ],
  [
    'L3: least of chain and record',
    answer([
      cname(www, 'x.example', 50),
      cname('x.example', 'y.example', 20),
      a('y.example', four, 30),
    ]),
    ['192.0.2.1 20'],
  ],
  [
    'bad and good records side by side',
    answer([address(www, { data: new Uint8Array(3) }), a(www, four), address('other', {})]),
    ['192.0.2.1 300'],
  ],
  ['the root', mkAnswer('', A, [a('', four)]), ['192.0.2.1 300'], ask('')],
  [
    'P3: unknown types around it',
    answer([{ owner: www, type: 65280, data: new Uint8Array(9) }, a(www, four)]),
    ['192.0.2.1 300'],
  ],
  ['P1: the Z bit', answer([a(www, four)], { flags: ANSWER_FLAGS | 0x40 }), ['192.0.2.1 300']],
  [
    'OPT with flags and options',
    answer([a(www, four)], { additionals: [opt({ flags: 0x8000, version: 1 })] }),
    ['192.0.2.1 300'],
  ],
]

test('AnswerView.read: what teaches', () => {
  for (const [reason, message, taught, question] of teaching) {
    const result = read(message, question)
    assert.deepEqual([result.status, result.taught], ['ok', taught], reason)
  }
})

test('AnswerView.read and the oracle agree on every row of these tables', () => {
  const rows = [
    ...silent,
    ...teaching.map(([reason, message, , question]) => [reason, message, question] as const),
  ]
  for (const [reason, message, question = ask(www)] of rows) {
    const labels: string[] = []
    for (let at = 0; question.name[at] !== 0; at += (question.name[at] ?? 0) + 1) {
      labels.push(
        Buffer.from(question.name.subarray(at + 1, at + 1 + (question.name[at] ?? 0))).toString(
          'latin1',
        ),
      )
    }
    const want = oracle(message, { labels, type: question.qtype, class: question.qclass })
    assert.equal(want.kind, 'ok', reason)
    const taught =
      want.kind === 'ok' ? [...want.taught].map(([text, ttl]) => `${text} ${ttl}`).sort() : []
    assert.deepEqual(taught, read(message, question).taught, reason)
  }
})

/** SERVFAIL with EDE 24 for the caller. */
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

test('AnswerView.read tells header, chain and the places of records', () => {
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

test('AnswerView.read names what is wrong with a chain', () => {
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

test('AnswerView.read forgets the answer before', () => {
  const view = new AnswerView(SEED)
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

test('AnswerView.read trusts no pointer because an earlier message had it', () => {
  const view = new AnswerView(SEED)
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
  const view = new AnswerView(SEED)
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
