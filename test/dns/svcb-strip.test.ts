// Which hints AnswerStrip removes from SVCB and HTTPS records, and that it keeps the rest (docs/spec/correctness S5, S6; RFC 9460 8).

import { test } from 'node:test'
import { a, https, service } from '../support/messages.ts'
import { answer, BAD_OCTETS, checkStrip, GOOD, www, type StripRow } from '../support/strip.ts'

const GOOD_6 = [0x20, 1, 0x0d, 0xb8, ...new Uint8Array(11), 1]

const ROWS: readonly StripRow[] = [
  [
    'a record without hints',
    'each',
    answer([https(www, service(1, '', [[1, [2, 104, 50]]]))]),
    'same',
  ],
  [
    'hints in AliasMode',
    'each',
    answer([https(www, service(0, 'x.example', [[4, GOOD]]))]),
    answer([https(www, service(0, 'x.example'))]),
  ],
  [
    'addresses stay when only hints go',
    'each',
    answer([a(www, '192.0.2.1'), https(www, service(1, '', [[4, GOOD]]))]),
    answer([a(www, '192.0.2.1'), https(www, service(1, ''))]),
  ],
  [
    'the unwanted one of two hints',
    'unwanted',
    answer([
      https(
        www,
        service(1, '', [
          [4, [...BAD_OCTETS, ...GOOD]],
          [6, GOOD_6],
        ]),
      ),
    ]),
    answer([
      https(
        www,
        service(1, '', [
          [4, GOOD],
          [6, GOOD_6],
        ]),
      ),
    ]),
  ],
  [
    'RFC 9460 8: a removed hint is no longer mandatory',
    'unwanted',
    answer([
      https(
        www,
        service(1, '', [
          [0, [0, 1, 0, 4, 0, 6]],
          [1, [1, 104]],
          [4, BAD_OCTETS],
          [6, GOOD_6],
        ]),
      ),
    ]),
    answer([
      https(
        www,
        service(1, '', [
          [0, [0, 1, 0, 6]],
          [1, [1, 104]],
          [6, GOOD_6],
        ]),
      ),
    ]),
  ],
  [
    'RFC 9460 8: no empty list of mandatory keys is left',
    'each',
    answer([
      https(
        www,
        service(1, '', [
          [0, [0, 4]],
          [4, GOOD],
        ]),
      ),
    ]),
    answer([https(www, service(1, ''))]),
  ],
  [
    'an empty list of mandatory keys in a record without removed hints',
    'unwanted',
    answer([
      https(
        www,
        service(1, '', [
          [0, []],
          [4, GOOD],
        ]),
      ),
    ]),
    'same',
  ],
  [
    'an empty list of mandatory keys stays, because no key is removed from it',
    'each',
    answer([
      https(
        www,
        service(1, '', [
          [0, []],
          [4, GOOD],
        ]),
      ),
    ]),
    answer([https(www, service(1, '', [[0, []]]))]),
  ],
  [
    'S5: an unreadable record is removed completely, the others stay',
    'each',
    answer([https(www, service(1, '', [[4, []]])), a(www, '192.0.2.1')]),
    answer([a(www, '192.0.2.1')]),
  ],
  [
    'a name that points into the target of a record that changed',
    'each',
    answer([
      https(www, service(1, 'far.test', [[4, GOOD]])),
      a({ raw: Uint8Array.of(0xc0, 0x2b) }, '192.0.2.1'),
    ]),
    answer([
      https(www, service(1, 'far.test')),
      a({ raw: Uint8Array.of(0xc0, 0x2b) }, '192.0.2.1'),
    ]),
  ],
]

const BESIDE_ECH: readonly StripRow[] = [
  [
    'every hint; alpn, port and ech stay',
    'each',
    answer([
      https(
        www,
        service(1, '', [
          [1, [2, 104, 50]],
          [3, [1, 187]],
          [4, GOOD],
          [5, [9, 9]],
          [6, GOOD_6],
        ]),
      ),
    ]),
    answer([
      https(
        www,
        service(1, '', [
          [1, [2, 104, 50]],
          [3, [1, 187]],
          [5, [9, 9]],
        ]),
      ),
    ]),
  ],
]

test('AnswerStrip.strip removes every hint; alpn, port and ech stay (S6)', () => {
  checkStrip(BESIDE_ECH)
})

test('AnswerStrip.strip removes hints from a record, and keeps its other parameters octet for octet', () => {
  checkStrip(ROWS)
})
