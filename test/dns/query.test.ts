import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as packet from 'dns-packet'
import { hashOctets, parseName } from '../../src/core/name.ts'
import { QueryView, type QueryStatus } from '../../src/dns/query.ts'
import { guard } from '../support/guarded.ts'
import {
  a,
  A,
  AAAA,
  concat,
  mkMessage,
  mkQuery,
  opt,
  option,
  QUERY_FLAGS,
  wireName,
  type MkMessage,
} from '../support/messages.ts'
import { mutateOctets } from '../support/mutate.ts'
import { Random } from '../support/random.ts'

function read(message: Uint8Array): { status: QueryStatus; view: QueryView } {
  const view = new QueryView()
  const slab = concat(Uint8Array.of(1, 2, 3), message, Uint8Array.of(0, 0, 41, 0, 0))
  return { status: view.read(slab, 3, message.length), view }
}

const cookie = (length: number) => option(10, new Uint8Array(length))
const withOpt = (change: Parameters<typeof opt>[0] = {}, more: MkMessage = {}) =>
  mkQuery('www.example', A, { additionals: [opt(change)], ...more })
const raw = (...octets: number[]) => ({ raw: Uint8Array.from(octets) })

const statuses: readonly (readonly [reason: string, message: Uint8Array, status: QueryStatus])[] = [
  ['a plain query', mkQuery('www.example'), 'ok'],
  ['the root', mkQuery('', 2), 'ok'],
  ['P1: the Z bit is nobody’s business', mkQuery('www.example', A, { flags: 0x0140 }), 'ok'],
  [
    'P3: an unknown type and class',
    mkMessage({ questions: [{ name: 'x', type: 65280, class: 254 }] }),
    'ok',
  ],
  [
    'P8: OPT is no reason to refuse',
    withOpt({ options: option(65001, Uint8Array.of(1, 2)) }),
    'ok',
  ],
  [
    'P9: TSIG in the additional section',
    mkQuery('x', A, {
      additionals: [{ owner: 'key', type: 250, class: 255, ttl: 0, data: new Uint8Array(30) }],
    }),
    'ok',
  ],
  [
    'IXFR carries SOA in the authority section',
    mkQuery('x', 251, { authorities: [{ owner: 'x', type: 6, data: new Uint8Array(22) }] }),
    'ok',
  ],
  ['E3: two OPT', mkQuery('x', A, { additionals: [opt(), opt()] }), 'formerr'],
  ['E4: version 1', withOpt({ version: 1 }), 'badvers'],
  [
    'E4: version 100 with an option of a layout unknown here',
    withOpt({ version: 100, options: Uint8Array.of(0, 9, 0) }),
    'badvers',
  ],
  [
    'E5: unknown options, repeated, in any order',
    withOpt({
      options: concat(
        option(15, new Uint8Array(2)),
        option(3, new Uint8Array(0)),
        option(3, new Uint8Array(0)),
        option(100, new Uint8Array(1)),
      ),
    }),
    'ok',
  ],
  ['E6: unknown EDNS flags', withOpt({ flags: 0x0080 }), 'ok'],
  [
    'E8: option length past RDLENGTH',
    withOpt({ options: option(100, new Uint8Array(2), 3) }),
    'formerr',
  ],
  ['E8: half an option header', withOpt({ options: Uint8Array.of(0, 100, 0) }), 'formerr'],
  ['E8: RDLENGTH past the message', withOpt({ rdlength: 1 }), 'formerr'],
  ['E9: OPT not owned by the root', withOpt({ owner: 'x' }), 'formerr'],
  ['E9: OPT owned by a pointer to the root', withOpt({ owner: raw(0xc0, 24) }), 'formerr'],
  ['OPT in the answer section', mkQuery('x', A, { answers: [opt()] }), 'formerr'],
  ['OPT in the authority section', mkQuery('x', A, { authorities: [opt()] }), 'formerr'],
  ['C2: a client cookie of 8', withOpt({ options: cookie(8) }), 'ok'],
  ['C2: client and server cookie of 16', withOpt({ options: cookie(16) }), 'ok'],
  ['C2: client and server cookie of 40', withOpt({ options: cookie(40) }), 'ok'],
  ['C2: cookie of 7', withOpt({ options: cookie(7) }), 'formerr'],
  ['C2: cookie of 9', withOpt({ options: cookie(9) }), 'formerr'],
  ['C2: cookie of 15', withOpt({ options: cookie(15) }), 'formerr'],
  ['C2: cookie of 41', withOpt({ options: cookie(41) }), 'formerr'],
  ['A20: 16,000 options without octets', withOpt({ options: new Uint8Array(64000) }), 'ok'],
  ['Q1: two questions', mkMessage({ questions: [{ name: 'a' }, { name: 'b' }] }), 'formerr'],
  [
    'Q1: two questions, the second by a pointer',
    mkMessage({ questions: [{ name: 'a' }, { name: 'a' }] }),
    'formerr',
  ],
  ['Q1: a second question announced only', mkQuery('a', A, { counts: [2, 0, 0, 0] }), 'formerr'],
  ['Q2: no question', mkMessage({ flags: QUERY_FLAGS }), 'notimp'],
  [
    'Q2: no question, but OPT',
    mkMessage({ flags: QUERY_FLAGS, additionals: [opt({ options: cookie(8) })] }),
    'notimp',
  ],
  [
    'no question and octets behind',
    mkMessage({ flags: QUERY_FLAGS, trailing: Uint8Array.of(0) }),
    'formerr',
  ],
  ['opcode 15', mkQuery('x', A, { flags: 0x7800 }), 'notimp'],
  [
    'opcode 6 (DSO), whose body is no list of records',
    mkMessage({ flags: 0x3000, trailing: Uint8Array.of(0, 1, 0, 4, 0, 0, 0, 0) }),
    'notimp',
  ],
  [
    'opcode 5 (UPDATE), malformed',
    mkQuery('x', A, { flags: 0x2800, counts: [9, 9, 9, 9] }),
    'notimp',
  ],
  ['A23: QR=1', mkQuery('x', A, { flags: 0x8100 }), 'silent'],
  ['A23: QR=1 and malformed', mkQuery('x', A, { flags: 0x8100, counts: [9, 0, 0, 0] }), 'silent'],
  [
    'A30: one octet behind the question',
    mkQuery('x', A, { trailing: Uint8Array.of(0) }),
    'formerr',
  ],
  [
    'A30: a whole record behind the counts',
    mkQuery('x', A, { additionals: [opt()], counts: [1, 0, 0, 0] }),
    'formerr',
  ],
  [
    'P11: an answer announced that is not there',
    mkQuery('x', A, { counts: [1, 1, 0, 0] }),
    'formerr',
  ],
  [
    'P11: an additional announced that is not there',
    mkQuery('x', A, { counts: [1, 0, 0, 1] }),
    'formerr',
  ],
  [
    'P11: 65,535 of everything announced',
    mkQuery('x', A, { counts: [0xffff, 0xffff, 0xffff, 0xffff] }),
    'formerr',
  ],
  ['P11: a pointer in the question name', mkQuery(raw(0xc0, 12)), 'formerr'],
  ['P11: a label, then a pointer, in the question name', mkQuery(raw(1, 0x61, 0xc0, 4)), 'formerr'],
  ['P11: label type 01', mkQuery(raw(0x41, 0)), 'formerr'],
  [
    'P11: a name of 256 octets',
    mkQuery(['x'.repeat(63), 'x'.repeat(63), 'x'.repeat(63), 'x'.repeat(62)]),
    'formerr',
  ],
  [
    'a name of 255 octets',
    mkQuery(['x'.repeat(63), 'x'.repeat(63), 'x'.repeat(63), 'x'.repeat(61)]),
    'ok',
  ],
  ['P11: no class', mkQuery('x').subarray(0, -1), 'formerr'],
  [
    'P11: a bad pointer in the owner of a record',
    mkQuery('x', A, { additionals: [a(raw(0xc0, 200), '192.0.2.1')] }),
    'formerr',
  ],
  [
    'P11: RDLENGTH past the end',
    mkQuery('x', A, { additionals: [{ ...a('x', '192.0.2.1'), rdlength: 5 }] }),
    'formerr',
  ],
]

test('QueryView.read gives the status of SEMANTICS 4', () => {
  for (const [reason, message, status] of statuses)
    assert.equal(read(message).status, status, reason)
})

test('QueryView.read: A19: every prefix of a query is silence or FORMERR', () => {
  const message = withOpt({ options: cookie(8) })
  for (let length = 0; length < message.length; length++) {
    const { status } = read(message.subarray(0, length))
    assert.equal(status, length < 12 ? 'silent' : 'formerr', `${length} octets`)
  }
})

test('QueryView.read tells the whole question', () => {
  const { status, view } = read(
    mkQuery(['WWW', 'Ex-am_ple9'], AAAA, {
      id: 0xfedc,
      flags: 0x0130,
      additionals: [opt({ udpSize: 4096, flags: 0x8000 })],
    }),
  )
  const name = wireName('www.ex-am_ple9')
  assert.equal(status, 'ok')
  const { id, flags, rd, cd, ad, nameLength, nameHash, nameFits, labelCount, qtype, qclass } = view
  assert.deepEqual(
    { id, flags, rd, cd, ad, nameLength, nameHash, nameFits, labelCount, qtype, qclass },
    {
      id: 0xfedc,
      flags: 0x0130,
      rd: true,
      cd: true,
      ad: true,
      nameLength: name.length,
      nameHash: hashOctets(name, 0, name.length),
      nameFits: true,
      labelCount: 2,
      qtype: AAAA,
      qclass: 1,
    },
  )
  assert.deepEqual(view.name.subarray(0, nameLength), name)
  const { questionEnd, hasOpt, udpSize, ednsVersion, dnssecOk } = view
  assert.deepEqual(
    { questionEnd, hasOpt, udpSize, ednsVersion, dnssecOk },
    {
      questionEnd: 12 + name.length + 4,
      hasOpt: true,
      udpSize: 4096,
      ednsVersion: 0,
      dnssecOk: true,
    },
  )
})

test('QueryView.read forgets the query before', () => {
  const view = new QueryView()
  const first = withOpt({ udpSize: 4096, flags: 0x8000 })
  view.read(first, 0, first.length)
  const second = mkMessage({ flags: 0x7800 })
  assert.equal(view.read(second, 0, second.length), 'notimp')
  const fresh = new QueryView()
  fresh.read(second, 0, second.length)
  assert.deepEqual({ ...view, name: 0 }, { ...fresh, name: 0 })
})

test('QueryView.read: E7: a UDP size below 512 is 512, and so is none', () => {
  for (const [size, want] of [
    [0, 512],
    [511, 512],
    [512, 512],
    [513, 513],
    [65535, 65535],
  ] as const) {
    assert.equal(read(withOpt({ udpSize: size })).view.udpSize, want)
  }
  assert.equal(read(mkQuery('x')).view.udpSize, 512)
})

test('QueryView.read: E8: OPT is known to be there when the query is malformed', () => {
  const rows: readonly (readonly [reason: string, message: Uint8Array])[] = [
    ['malformed option', withOpt({ options: option(1, new Uint8Array(0), 9) })],
    ['RDLENGTH of OPT past the end', withOpt({ rdlength: 50 })],
    ['octets behind', withOpt({}, { trailing: Uint8Array.of(7) })],
    ['two questions', withOpt({}, { questions: [{ name: 'a' }, { name: 'b' }] })],
    ['owner not the root', withOpt({ owner: 'x' })],
  ]
  for (const [reason, message] of rows) {
    const { status, view } = read(message)
    assert.deepEqual([status, view.hasOpt], ['formerr', true], reason)
  }
})

test('QueryView.read keeps the question of a malformed query only when there is exactly one that can be read', () => {
  assert.equal(read(mkQuery('x', A, { trailing: Uint8Array.of(0) })).view.questionEnd, 19)
  assert.equal(read(mkMessage({ questions: [{ name: 'a' }, { name: 'b' }] })).view.questionEnd, 0)
  assert.equal(read(mkQuery(raw(0xc0, 12))).view.questionEnd, 0)
  assert.equal(read(mkQuery('x').subarray(0, -1)).view.questionEnd, 0)
  assert.equal(read(mkMessage({ flags: QUERY_FLAGS })).view.questionEnd, 0)
})

test('QueryView.read: A9: only names of a-z 0-9 - _ fit patterns', () => {
  assert.equal(read(mkQuery('')).view.nameFits, true)
  for (const octet of Array.from({ length: 256 }, (_, i) => i)) {
    const { status, view } = read(mkQuery(['a', String.fromCharCode(0x62, octet), 'c']))
    const fits = /^[A-Za-z0-9_-]$/.test(String.fromCharCode(octet))
    assert.deepEqual([status, view.nameFits, view.labelCount], ['ok', fits, 3], `octet ${octet}`)
  }
})

test('QueryView.read: A9: a dot inside a label is no border', () => {
  const two = read(mkQuery(['a.b', 'com'])).view
  const three = read(mkQuery(['a', 'b', 'com'])).view
  assert.deepEqual([two.labelCount, three.labelCount], [2, 3])
  assert.notDeepEqual(two.name, three.name)
  assert.equal(two.nameFits, false)
})

test('QueryView.read agrees with dns-packet on queries that it encodes', () => {
  const label = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)
  const types: packet.RecordType[] = ['A', 'AAAA', 'TXT', 'SRV', 'NS']
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 6 }),
      fc.constantFrom(...types),
      fc.nat(0xffff),
      fc.boolean(),
      (labels, type, id, edns) => {
        const opt: packet.OptAnswer = {
          type: 'OPT',
          name: '.',
          udpPayloadSize: 1400,
          extendedRcode: 0,
          ednsVersion: 0,
          flags: 0,
          flag_do: false,
          options: [],
        }
        const octets = packet.encode({
          type: 'query',
          id,
          flags: packet.RECURSION_DESIRED,
          questions: [{ type, name: labels.join('.') }],
          additionals: edns ? [opt] : [],
        })
        const { status, view } = read(octets)
        const name = parseName(labels.join('.'))
        assert.equal(status, 'ok')
        assert.deepEqual(
          [view.id, view.hasOpt, view.udpSize, view.rd],
          [id, edns, edns ? 1400 : 512, true],
        )
        assert.deepEqual(name.kind === 'ok' && name.name, view.name.slice(0, view.nameLength))
      },
    ),
  )
})

test('QueryView.read never reads outside the message nor throws, for 3,000 spoiled queries', () => {
  const random = new Random(7)
  const view = new QueryView()
  const seen = new Set<QueryStatus>()
  for (let i = 0; i < 3000; i++) {
    const message = mutateOctets(
      random,
      random.oneIn(2) ? withOpt({ options: cookie(8) }) : mkQuery('a.b.example'),
    )
    const { buf, offset, length, outside } = guard(message)
    seen.add(view.read(buf, offset, length))
    assert.deepEqual(outside, [], Buffer.from(message).toString('hex'))
  }
  assert.deepEqual([...seen].sort(), ['badvers', 'formerr', 'notimp', 'ok', 'silent'])
})
