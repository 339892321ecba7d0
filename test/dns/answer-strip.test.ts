// Which octets AnswerStrip removes with addresses and which it keeps: the message is compared with one that was built without them. Hints:
// svcb-strip.test.ts; random runs compared with a model: test/property/strip-mutation.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as packet from 'dns-packet'
import { AnswerStrip } from '../../src/dns/answer-strip.ts'
import {
  a,
  aaaa,
  ANSWER_FLAGS,
  cname,
  concat,
  https,
  opt,
  service,
  wireName,
  type MkRecord,
} from '../support/messages.ts'
import {
  answer,
  BAD,
  BAD_OCTETS,
  checkStrip,
  GOOD,
  loopback,
  www,
  type StripRow,
} from '../support/strip.ts'

const MAPPED = [...new Uint8Array(10), 255, 255, ...BAD_OCTETS]
const RRSIG = 46
const AD = 0x20
const FLAG_DO = 0x8000

const rrsig = (owner: string, covered: number): MkRecord => ({
  owner,
  type: RRSIG,
  data: concat(
    Uint8Array.of(0, covered),
    new Uint8Array(16),
    wireName('example'),
    new Uint8Array(64),
  ),
})
const mx = (owner: string, name: string): MkRecord => ({
  owner,
  type: 15,
  data: { before: Uint8Array.of(0, 10), name },
})

const ROWS: readonly StripRow[] = [
  ['nothing unwanted', 'unwanted', answer([a(www, '192.0.2.1'), aaaa(www, [0x2001])]), 'same'],
  [
    'one of two',
    'unwanted',
    answer([a(www, BAD), a(www, '192.0.2.1')]),
    answer([a(www, '192.0.2.1')]),
  ],
  ['every record', 'unwanted', answer([a(www, BAD)]), answer([])],
  [
    'IPv4-mapped IPv6',
    'unwanted',
    answer([{ owner: www, type: 28, data: Uint8Array.from(MAPPED) }, a(www, '192.0.2.1')]),
    answer([a(www, '192.0.2.1')]),
  ],
  [
    'the chain stays, and pointers to moved names are right',
    'unwanted',
    answer([
      a('x.cdn.net', BAD),
      cname(www, 'x.cdn.net'),
      a('x.cdn.net', '192.0.2.1'),
      mx(www, 'm.cdn.net'),
    ]),
    answer([cname(www, 'x.cdn.net'), a('x.cdn.net', '192.0.2.1'), mx(www, 'm.cdn.net')]),
  ],
  [
    'a name that was only in a removed record, in parts: the rest of it first',
    'unwanted',
    answer([a('a.b.cdn.net', BAD), a('b.cdn.net', '192.0.2.1'), a('a.b.cdn.net', '192.0.2.2')]),
    answer([a('b.cdn.net', '192.0.2.1'), a('a.b.cdn.net', '192.0.2.2')]),
  ],
  [
    'every section',
    'unwanted',
    answer([mx(www, 'm.example')], {
      authorities: [a('ns.example', BAD)],
      additionals: [a('m.example', BAD), a('m.example', '192.0.2.1'), opt({ flags: FLAG_DO })],
    }),
    answer([mx(www, 'm.example')], {
      additionals: [a('m.example', '192.0.2.1'), opt({ flags: FLAG_DO })],
    }),
  ],
  [
    'a record of another class, or of another size',
    'unwanted',
    answer([
      { ...a(www, BAD), class: 3 },
      { owner: www, type: 1, data: Uint8Array.of(127, 0, 0) },
    ]),
    'same',
  ],
  ['octets behind the last record', 'each', concat(answer([a(www, BAD)]), Uint8Array.of(0)), 'bad'],
  ['a header that is cut', 'each', answer([]).subarray(0, 11), 'bad'],
  [
    'RDATA with an unreadable name after removed octets',
    'unwanted',
    answer([a(www, BAD), { owner: www, type: 2, data: Uint8Array.of(0xff, 0xff) }]),
    'bad',
  ],
]

const SIGNED: readonly StripRow[] = [
  [
    'signatures over changed records go, those over other types stay; AD is cleared',
    'unwanted',
    answer([a(www, BAD), a(www, '192.0.2.1'), rrsig(www, 1), rrsig(www, 28)], {
      flags: ANSWER_FLAGS | AD,
    }),
    answer([a(www, '192.0.2.1'), rrsig(www, 28)]),
  ],
  [
    'a signed answer without a removal keeps signatures and AD',
    'unwanted',
    answer([a(www, '192.0.2.1'), rrsig(www, 1)], { flags: ANSWER_FLAGS | AD }),
    'same',
  ],
]

test('AnswerStrip.strip removes the filtered records, and keeps the rest octet for octet', () => {
  checkStrip(ROWS)
})

test('AnswerStrip.strip removes signatures over changed records, and no others (S6)', () => {
  checkStrip(SIGNED)
})

test('AnswerStrip counts what it removed', () => {
  const strip = new AnswerStrip()
  const hints = https(www, service(1, '', [[4, [...BAD_OCTETS, ...GOOD]]]))
  const unreadable = https(www, service(1, '', [[6, []]]))
  const message = answer([a(www, BAD), a(www, '192.0.2.1'), hints, unreadable, rrsig(www, 65)])
  strip.strip(message, 0, message.length, false, loopback)
  assert.deepEqual(strip.counters, { addresses: 1, hints: 1, unreadable: 1, signatures: 1 })
})

test('AnswerStrip.strip without a filter removes only hints', () => {
  const strip = new AnswerStrip()
  const message = answer([a(www, BAD), https(www, service(1, '', [[4, GOOD]]))])
  assert.equal(strip.strip(message, 0, message.length, true, undefined), 'gone')
  const left = answer([a(www, BAD), https(www, service(1, ''))])
  assert.deepEqual(strip.octets.slice(0, strip.length), left)
})

test('AnswerStrip.strip of 64 KiB costs under 20 ms, also if all names must be written again', () => {
  const names = Array.from({ length: 1500 }, (_, i) =>
    a(`n${i}.cdn.net`, i % 2 === 0 ? BAD : '192.0.2.1'),
  )
  const again = names.map(({ owner }) => a(owner, '192.0.2.2'))
  const message = answer([...names, ...again])
  assert.ok(message.length > 50_000 && message.length < 65_536, `${message.length}`)
  const strip = new AnswerStrip()
  let best = Infinity
  // More rounds if other programs use the machine.
  for (let i = 0; i < 5 || (best >= 20 && i < 100); i++) {
    const before = performance.now()
    assert.equal(strip.strip(message, 0, message.length, true, loopback), 'gone')
    best = Math.min(best, performance.now() - before)
  }
  assert.ok(best < 20, `${best} ms`)
  assert.equal(
    packet.decode(Buffer.from(strip.octets.slice(0, strip.length))).answers?.length,
    2250,
  )
})
