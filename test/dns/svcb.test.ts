// SVCB and HTTPS records (docs/spec/correctness 1.7): which hints teach, and which records are malformed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerView } from '../../src/dns/answer.ts'
import { ServiceParams } from '../../src/dns/svcb.ts'
import { address, answer, ask, four, oracleTaught, read, www } from '../support/answers.ts'
import {
  a,
  cname,
  concat,
  https,
  mkAnswer,
  service,
  SVCB,
  wireName,
  type MkRecord,
} from '../support/messages.ts'
import { hintsOf } from '../support/models/oracle-svcb.ts'

const ONE = [192, 0, 2, 1]
const TWO = [192, 0, 2, 2]
const V6 = [0x20, 1, 0x0d, 0xb8, ...new Uint8Array(11), 1]
const MAPPED = [...new Uint8Array(10), 255, 255, ...TWO]
const HTTPS = 65
const hinted = service(1, '', [[4, ONE]])
const long = 'x'.repeat(63)

const ROWS: readonly (readonly [
  reason: string,
  records: readonly MkRecord[],
  taught: readonly string[],
])[] = [
  ['S2: an IPv4 hint', [https(www, hinted, 60)], ['192.0.2.1 60']],
  [
    'S2: hints of both families, each address of them',
    [
      https(
        www,
        service(1, '', [
          [4, [...ONE, ...TWO]],
          [6, V6],
        ]),
        60,
      ),
    ],
    ['192.0.2.1 60', '192.0.2.2 60', '2001:db8::1 60'],
  ],
  ['S2: SVCB as HTTPS', [{ owner: www, type: SVCB, ttl: 60, data: hinted }], ['192.0.2.1 60']],
  [
    'S2: at the end of the chain, with its least TTL',
    [cname(www, 'x.example', 20), https('x.example', hinted, 60)],
    ['192.0.2.1 20'],
  ],
  ['S2: a foreign owner', [https('other.example', hinted)], []],
  [
    'S2: the TargetName does not need a policy of its own',
    [https(www, service(1, 'o.example', [[4, ONE]]))],
    ['192.0.2.1 300'],
  ],
  ['S2: a record of class CH', [{ ...https(www, hinted), class: 3 }], []],
  [
    'S2: an IPv4-mapped hint is IPv4',
    [https(www, service(1, '', [[6, MAPPED]]))],
    ['192.0.2.2 300'],
  ],
  [
    'L3: a hint that is an A record too has the lesser TTL',
    [https(www, hinted, 30), a(www, four, 60)],
    ['192.0.2.1 30'],
  ],
  [
    'S1: unknown keys around the hints',
    [
      https(
        www,
        service(1, '', [
          [2, []],
          [4, ONE],
          [5, [1, 2]],
          [0xfde8, [9]],
        ]),
      ),
    ],
    ['192.0.2.1 300'],
  ],
  [
    'S3: AliasMode: clients ignore its parameters',
    [https(www, service(0, 'x.example', [[4, ONE]]))],
    [],
  ],
  [
    'S3: AliasMode is no link of the chain',
    [https(www, service(0, 'x.example')), a('x.example', four)],
    [],
  ],
  [
    'S5: keys in the wrong order',
    [
      https(
        www,
        service(1, '', [
          [4, ONE],
          [3, [1, 187]],
        ]),
      ),
    ],
    [],
  ],
  [
    'S5: a key twice',
    [
      https(
        www,
        service(1, '', [
          [4, ONE],
          [4, TWO],
        ]),
      ),
    ],
    [],
  ],
  ['S5: a hint of 5 octets', [https(www, service(1, '', [[4, [...ONE, 0]]]))], []],
  ['S5: an IPv6 hint of 4 octets', [https(www, service(1, '', [[6, ONE]]))], []],
  ['S5: an empty hint', [https(www, service(1, '', [[4, []]]))], []],
  [
    'S5: one bad hint makes the record malformed',
    [
      https(
        www,
        service(1, '', [
          [4, ONE],
          [6, []],
        ]),
      ),
    ],
    [],
  ],
  ['S5: a value past RDATA', [https(www, concat(hinted, Uint8Array.of(0, 9, 0, 4, 1, 2, 3)))], []],
  ['S5: half a key', [https(www, concat(hinted, Uint8Array.of(0, 9, 0)))], []],
  ['S5: no priority', [https(www, Uint8Array.of(1))], []],
  ['S5: no target', [https(www, Uint8Array.of(0, 1))], []],
  [
    'S5: a compressed target',
    [https(www, service(1, { raw: Uint8Array.of(0xc0, 12) }, [[4, ONE]]))],
    [],
  ],
  [
    'S5: a target of 256 octets',
    [https(www, service(1, [long, long, long, 'x'.repeat(62)], [[4, ONE]]))],
    [],
  ],
  [
    'a target of 255 octets',
    [https(www, service(1, [long, long, long, 'x'.repeat(61)], [[4, ONE]]))],
    ['192.0.2.1 300'],
  ],
  [
    'S5: a malformed record affects no other',
    [https(www, service(1, '', [[4, []]])), https(www, hinted), address('other.example')],
    ['192.0.2.1 300'],
  ],
]

test('AnswerView.read: 1.7: which SVCB and HTTPS records teach, by the view and by the oracle', () => {
  for (const [reason, records, taught] of ROWS) {
    const message = answer(records, {}, HTTPS)
    const question = ask(www, HTTPS)
    const result = read(message, question)
    assert.deepEqual([result.status, result.taught], ['ok', taught], reason)
    assert.deepEqual(oracleTaught(message, question), taught, `oracle: ${reason}`)
  }
})

test('AnswerView.read without hints teaches addresses', () => {
  const view = new AnswerView()
  view.learnsHints = false
  const message = answer([https(www, hinted), a(www, '192.0.2.9', 7)])
  assert.equal(view.read(message, 0, message.length, ask(www)), 'ok')
  assert.deepEqual([view.count, view.ttls[0]], [1, 7])
})

test('AnswerView.read: S4: a name with a port prefix is its own name, below the host', () => {
  const port = '_8443._https.www.example'
  const message = mkAnswer(port, HTTPS, [https(port, hinted)])
  assert.deepEqual(read(message, ask(port, HTTPS)).taught, ['192.0.2.1 300'])
  assert.deepEqual(read(mkAnswer(www, HTTPS, [https(port, hinted)]), ask(www, HTTPS)).taught, [])
})

test('ServiceParams.read agrees with the oracle on every cut and every changed octet of a record', () => {
  const whole = service(1, 'x.example', [
    [0, [0, 4]],
    [1, [2, 104, 50]],
    [4, [...ONE, ...TWO]],
    [6, V6],
  ])
  const params = new ServiceParams()
  let teaching = 0
  const check = (rdata: Uint8Array): void => {
    const slab = concat(Uint8Array.of(7, 7), rdata, new Uint8Array(40))
    const isRead = params.read(slab, 2, 2 + rdata.length)
    const count = isRead && params.hasHints ? params.ipv4Octets / 4 + params.ipv6Octets / 16 : 0
    assert.equal(count, hintsOf(rdata).length, Buffer.from(rdata).toString('hex'))
    if (count > 0) teaching++
  }
  for (let size = 0; size <= whole.length; size++) check(whole.subarray(0, size))
  for (let at = 0; at < whole.length; at++) {
    for (let value = 0; value < 256; value++) {
      const changed = whole.slice()
      changed[at] = value
      check(changed)
    }
  }
  assert.ok(teaching > 1000, `${teaching} records teach`)
  assert.equal(
    wireName('x.example').length + 2,
    params.read(whole, 0, whole.length) ? params.paramsAt : 0,
  )
})
