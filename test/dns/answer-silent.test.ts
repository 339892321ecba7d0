// Answers that must not teach: docs/spec/correctness A7 and similar cases, each row alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Question } from '../../src/dns/query.ts'
import { ask, read, www, four, answer, address, chain, oracleTaught } from '../support/answers.ts'
import {
  a,
  A,
  AAAA,
  ANSWER_FLAGS,
  cname,
  concat,
  DNAME,
  mkAnswer,
  mkMessage,
  opt,
  wireName,
} from '../support/messages.ts'

/** A7 and similar cases. Each alone teaches nothing, and the message passes. */
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
    'A7: RCODE 16, given by OPT',
    answer([address(www)], { additionals: [opt({ extendedRcode: 1 })] }),
  ],
  [
    'A7: RCODE given by the second of two OPT',
    answer([address(www)], { additionals: [opt(), opt({ extendedRcode: 1 })] }),
  ],
  [
    'A7: RCODE given by an OPT between the answers',
    answer([opt({ extendedRcode: 1 }), address(www)]),
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
]

test('AnswerView.read: A7: answers that teach nothing, by the view and by the oracle', () => {
  for (const [reason, message, question] of silent) {
    const { status, taught } = read(message, question)
    assert.deepEqual([status, taught], ['ok', []], reason)
    assert.deepEqual(oracleTaught(message, question ?? ask(www)), [], reason)
  }
})
