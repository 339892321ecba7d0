import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as packet from 'dns-packet'
import { formatName } from '../../src/core/name.ts'
import { decodeMessage, encodeQuery, type MessageText } from '../../src/dns/codec.ts'
import { parseType, formatType } from '../../src/dns/presentation.ts'
import { QueryView } from '../../src/dns/query.ts'
import {
  a,
  A,
  aaaa,
  cname,
  concat,
  mkAnswer,
  mkMessage,
  opt,
  option,
  text,
  wireName,
  type MkRecord,
} from '../support/messages.ts'
import {
  mutateField,
  mutateOctets,
  randomAnswer,
  randomQuestion,
} from '../support/models/mutate.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

function decode(octets: Uint8Array): MessageText {
  const slab = concat(Uint8Array.of(1, 2, 3), octets)
  const result = decodeMessage(slab, 3, octets.length)
  assert.equal(result.kind, 'ok', result.kind === 'bad' ? result.reason : '')
  return result.kind === 'ok' ? result.message : assert.fail()
}

test('encodeQuery makes what QueryView reads back, odd octets included', () => {
  const label = fc.uint8Array({ minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(
      fc.array(label, { maxLength: 8 }),
      fc.nat(0xffff),
      fc.nat(0xffff),
      fc.option(fc.integer({ min: 512, max: 4096 })),
      fc.boolean(),
      (labels, type, id, udpSize, dnssecOk) => {
        const wire = concat(
          ...labels.map((octets) => concat(Uint8Array.of(octets.length), octets)),
          Uint8Array.of(0),
        )
        const asked = { id, name: formatName(wire), type: `TYPE${type}`, dnssecOk }
        const result = encodeQuery(udpSize === null ? asked : { ...asked, udpSize })
        assert.equal(result.kind, 'ok')
        if (result.kind !== 'ok') return
        const view = new QueryView()
        assert.equal(view.read(result.octets, 0, result.octets.length), 'ok')
        const lowered = wire.map((octet) => (octet >= 65 && octet <= 90 ? octet + 32 : octet))
        assert.deepEqual(view.name.slice(0, view.nameLength), lowered)
        const { qtype, qclass, rd, hasOpt } = view
        assert.deepEqual(
          { id: view.id, qtype, qclass, rd, hasOpt },
          { id, qtype: type, qclass: 1, rd: true, hasOpt: udpSize !== null },
        )
        assert.deepEqual(
          [view.udpSize, view.dnssecOk],
          [udpSize ?? 512, udpSize !== null && dnssecOk],
        )
      },
    ),
  )
})

test('encodeQuery refuses invalid names and types', () => {
  for (const [name, type, reason] of [
    ['a..b', 'A', 'name: empty label'],
    ['a', 'NOPE', 'unknown type "NOPE"'],
    ['a', 'TYPE65536', 'unknown type "TYPE65536"'],
    ['a', 'constructor', 'unknown type "constructor"'],
  ] as const) {
    assert.deepEqual(encodeQuery({ id: 1, name, type }), { kind: 'bad', reason })
  }
})

test('parseType and formatType are inverse to each other', () => {
  for (let type = 0; type < 0x10000; type++) assert.equal(parseType(formatType(type)), type)
  assert.equal(parseType('https'), 65)
})

const www = 'www.example'
const data = (octets: Uint8Array | readonly number[], type: number): MkRecord => ({
  owner: www,
  type,
  data: Uint8Array.from(octets),
})

const rdata: readonly (readonly [reason: string, record: MkRecord, type: string, want: string])[] =
  [
    ['A', a(www, '192.0.2.1'), 'A', '192.0.2.1'],
    ['A of three octets is shown as octets', data([1, 2, 3], A), 'A', '\\# 3 010203'],
    ['AAAA', aaaa(www, [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]), 'AAAA', '2001:db8::1'],
    ['CNAME, compressed', cname(www, 'x.example'), 'CNAME', 'x.example.'],
    ['CNAME to the root', cname(www, ''), 'CNAME', '.'],
    ['A9: a dot in a label', cname(www, ['a.b', 'c']), 'CNAME', 'a\\046b.c.'],
    ['NS with octets behind the name', data([0, 0], 2), 'NS', '\\# 2 0000'],
    ['MX', data(concat(Uint8Array.of(0, 10), wireName('mx.example')), 15), 'MX', '10 mx.example.'],
    [
      'SRV',
      data(concat(Uint8Array.of(0, 1, 0, 2, 0, 80), wireName('s.example')), 33),
      'SRV',
      '1 2 80 s.example.',
    ],
    [
      'SOA',
      data(
        concat(
          wireName('ns.x'),
          wireName('m.x'),
          Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0xff, 0, 0, 0),
        ),
        6,
      ),
      'SOA',
      'ns.x. m.x. 1 2 3 4 4278190080',
    ],
    ['TXT, escaped', data([3, 0x22, 0x5c, 0x1b, 2, 0x68, 0x69], 16), 'TXT', '"\\"\\\\\\027" "hi"'],
    ['TXT that ends too early', data([5, 0x61], 16), 'TXT', '\\# 2 0561'],
    [
      'CAA',
      data(concat(Uint8Array.of(0, 5), text('issueca.example')), 257),
      'CAA',
      '0 issue "ca.example"',
    ],
    [
      'CAA whose value is octets',
      data([0, 5, ...text('issue'), 0xff, 0x1b], 257),
      'CAA',
      '0 issue "\\255\\027"',
    ],
    ['CAA whose tag is not letters', data([0, 2, 0x1b, 0xff], 257), 'CAA', '\\# 4 00021bff'],
    ['CAA whose tag ends too late', data([0, 2, 0x61], 257), 'CAA', '\\# 3 000261'],
    ['DS, by dns-packet', data([0, 1, 8, 2, 0xab, 0xcd], 43), 'DS', '1 8 2 abcd'],
    ['CAA without octets', data([], 257), 'CAA', '\\# 0'],
    ['HTTPS', data([0, 1, 0], 65), 'HTTPS', '\\# 3 000100'],
    ['an unknown type', data([], 65280), 'TYPE65280', '\\# 0'],
  ]

test('decodeMessage shows RDATA as text', () => {
  for (const [reason, record, type, want] of rdata) {
    const [shown] = decode(mkAnswer(www, A, [record])).answers
    assert.deepEqual(
      shown,
      { name: 'www.example.', type, class: 'IN', ttl: 300, data: want },
      reason,
    )
  }
})

test('decodeMessage shows a whole message', () => {
  const options = concat(
    option(15, concat(Uint8Array.of(0, 15), text('no'))),
    option(10, Uint8Array.of(0xab)),
  )
  const octets = mkMessage({
    id: 7,
    flags: 0x87b0,
    questions: [{ name: 'WWW.example', type: 65280, class: 3 }],
    authorities: [{ owner: 'ns', type: 2, class: 254, ttl: 0xffffffff, data: { name: 'x' } }],
    additionals: [opt({ extendedRcode: 1, flags: 0x8000, options })],
  })
  assert.deepEqual(decode(octets), {
    id: 7,
    opcode: 'QUERY',
    rcode: 'BADVERS',
    flags: ['qr', 'aa', 'tc', 'rd', 'ra', 'ad', 'cd'],
    questions: [{ name: 'www.example.', type: 'TYPE65280', class: 'CH' }],
    answers: [],
    authorities: [{ name: 'ns.', type: 'NS', class: 'NONE', ttl: 4294967295, data: 'x.' }],
    additionals: [],
    edns: {
      version: 0,
      udpSize: 1232,
      dnssecOk: true,
      errors: ['15 (Blocked) "no"'],
      options: [{ code: 10, data: 'ab' }],
    },
  })
})

test('decodeMessage refuses malformed messages, and names the place', () => {
  const whole = mkAnswer(www, A, [a(www, '192.0.2.1')])
  for (const [octets, reason] of [
    [new Uint8Array(11), 'shorter than a header'],
    [whole.subarray(0, 20), 'malformed at octet 12'],
    [whole.subarray(0, -1), 'malformed at octet 29'],
    [concat(whole, Uint8Array.of(0)), 'octets behind the last record'],
  ] as const) {
    assert.deepEqual(decodeMessage(octets, 0, octets.length), { kind: 'bad', reason })
  }
})

test('decodeMessage reads the records that dns-packet encodes', () => {
  const label = fc.stringMatching(/^[a-z0-9-]{1,12}$/)
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 5 }),
      fc.nat(0x7fffffff),
      fc.ipV4(),
      (labels, ttl, address) => {
        const name = labels.join('.')
        const octets = packet.encode({
          type: 'response',
          answers: [
            { type: 'A', name, ttl, data: address },
            { type: 'PTR', name, ttl, data: name },
          ],
        })
        assert.deepEqual(
          decode(octets).answers.map(({ name: owner, type, ttl: seconds, data: shown }) => [
            owner,
            type,
            seconds,
            shown,
          ]),
          [
            [`${name}.`, 'A', ttl, address],
            [`${name}.`, 'PTR', ttl, `${name}.`],
          ],
        )
      },
    ),
  )
})

/** JSON writes a control character as a backslash and a character other than a quotation mark. */
const PRINTABLE = /^(?!.*\\[^"])[ -~]*$/

test('decodeMessage never throws and shows printable ASCII only, for 3,000 spoiled messages', () => {
  const random = new Random(5)
  const seen = { ok: 0, bad: 0 }
  for (let i = 0; i < runsOf(3000); i++) {
    const laid = randomAnswer(random, randomQuestion(random))
    const octets = random.oneIn(2) ? mutateField(random, laid) : mutateOctets(random, laid.octets)
    const result = decodeMessage(octets, 0, octets.length)
    seen[result.kind]++
    assert.match(JSON.stringify(result).replaceAll('\\\\', ''), PRINTABLE)
  }
  assert.ok(seen.ok > 500 && seen.bad > 500, JSON.stringify(seen))
})
