// The status of a query, row by row of docs/spec/semantics 4 and docs/spec/correctness 1 and 2.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QueryStatus } from '../../src/dns/query.ts'
import { a, A, concat, mkMessage, mkQuery, opt, option, QUERY_FLAGS } from '../support/messages.ts'
import { readQuery, cookie, withOpt, raw } from '../support/queries.ts'

const statuses: readonly (readonly [reason: string, message: Uint8Array, status: QueryStatus])[] = [
  ['a plain query', mkQuery('www.example'), 'ok'],
  ['the root', mkQuery('', 2), 'ok'],
  ['P1: the Z bit does not matter', mkQuery('www.example', A, { flags: 0x0140 }), 'ok'],
  [
    'P3: an unknown type and class',
    mkMessage({ questions: [{ name: 'x', type: 65280, class: 254 }] }),
    'ok',
  ],
  [
    'P8: OPT alone is no reason to refuse',
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
  ['P11: an announced answer is missing', mkQuery('x', A, { counts: [1, 1, 0, 0] }), 'formerr'],
  [
    'P11: an announced additional record is missing',
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

test('QueryView.read gives the status of docs/spec/semantics 4', () => {
  for (const [reason, message, status] of statuses)
    assert.equal(readQuery(message).status, status, reason)
})
