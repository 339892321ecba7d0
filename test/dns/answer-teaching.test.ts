// Answers that teach, and their TTLs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Question } from '../../src/dns/query.ts'
import {
  ask,
  read,
  www,
  four,
  raw,
  answer,
  address,
  chain,
  oracleTaught,
} from '../support/answers.ts'
import { a, A, aaaa, ANSWER_FLAGS, cname, DNAME, mkAnswer, opt } from '../support/messages.ts'

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
    'a foreign loop is not part of the chain',
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
    'an address beside a CNAME whose owner points to the pointer of the address',
    answer([a(www, four), cname(raw(0xc0, 29), 'x.example', 20)]),
    ['192.0.2.1 300'],
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

test('AnswerView.read: answers that teach, by the view and by the oracle', () => {
  for (const [reason, message, taught, question] of teaching) {
    const result = read(message, question)
    assert.deepEqual(oracleTaught(message, question ?? ask(www)), taught, reason)
    assert.deepEqual([result.status, result.taught], ['ok', taught], reason)
  }
})
