// docs/spec/correctness 1.1: RFC 5625, guidelines for DNS proxies.

import assert from 'node:assert/strict'
import { askedFromOutside } from '../lab/outside.ts'
import { assertSame, QR, RA, RD, TC, Z } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { expectPassed } from '../exchange.ts'
import {
  ask,
  askOpt,
  bytes,
  mismatchThen,
  options,
  own,
  sized,
  truncated,
  UNKNOWN_OPTION,
} from './build.ts'
import { MALFORMED_ANSWERS, MALFORMED_QUERIES } from './malformed.ts'
import type { Row } from './row.ts'
import { a, ANSWER_FLAGS, mkMessage, opt, QUERY_FLAGS, wireName } from '../../support/messages.ts'

const UNKNOWN_TYPE = 65_280

export const RFC_5625: readonly Row[] = [
  {
    kind: 'exchange',
    id: 'P1',
    what: 'the reserved header bit passes in query and answer',
    query: (name) => ask(name, { flags: QUERY_FLAGS | Z }),
    answer: (asking) => [own(asking, { flags: ANSWER_FLAGS | Z })],
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'exchange',
    id: 'P2',
    what: 'names without compression pass',
    query: (name) =>
      ask(name, {
        compress: false,
        authorities: [{ owner: name, type: UNKNOWN_TYPE, data: bytes(3) }],
      }),
    answer: (asking) => [own(asking, { compress: false })],
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'exchange',
    id: 'P2',
    what: 'names with compression pass',
    query: (name) =>
      ask(name, { authorities: [{ owner: name, type: UNKNOWN_TYPE, data: bytes(3) }] }),
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'exchange',
    id: 'P3',
    what: 'an unknown type passes, and so does its RDATA',
    query: (name) => ask(name, { questions: [{ name, type: UNKNOWN_TYPE }] }),
    answer: (asking) => [
      own(asking, {
        answers: [{ owner: asking.question.name, type: UNKNOWN_TYPE, data: bytes(300) }],
      }),
    ],
    allowed: 'passes',
  },
  ...[
    ['CH', 3],
    ['NONE', 254],
    ['ANY', 255],
  ].map(([word, qclass]): Row => ({
    kind: 'exchange',
    id: 'P3',
    what: `class ${String(word)} passes`,
    query: (name) => ask(name, { questions: [{ name, class: Number(qclass) }] }),
    allowed: 'passes',
    teaches: false,
  })),
  {
    kind: 'exchange',
    id: 'P4',
    what: 'an answer with TC keeps it; over UDP namegate does not try TCP',
    query: (name) => ask(name),
    answer: (asking) => [answerTo(asking, { flags: ANSWER_FLAGS | TC })],
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'P5',
    what: 'an answer over TCP that is too long for UDP gets TC',
    note: 'the answer arrives over TCP after a mismatch over UDP [A4]',
    query: (name) => ask(name),
    answer: (asking) => mismatchThen(asking, () => sized(asking, 600)),
    allowed: ({ got, query }) =>
      assertSame(got, truncated(query, QR | TC | RD | RA), 'header and question'),
    over: ['udp'],
  },
  ...[513, 1232, 4096].map((size): Row => ({
    kind: 'exchange',
    id: 'P6',
    what: `an answer of ${size} octets passes whole if the client accepts 4096`,
    query: (name) => askOpt(name, { udpSize: 4096 }),
    answer: (asking) => [sized(asking, size, [opt({ udpSize: 1232 })])],
    allowed: 'passes',
    inEveryMode: true,
  })),
  {
    kind: 'exchange',
    id: 'P7',
    what: 'a query over TCP is forwarded over TCP at once',
    query: (name) => ask(name),
    over: ['tcp'],
    allowed: (seen) => {
      expectPassed(seen)
      assert.ok(seen.asked.every(({ transport }) => transport === 'tcp'))
    },
  },
  {
    kind: 'exchange',
    id: 'P8',
    what: 'an OPT record with any content passes',
    query: (name) =>
      askOpt(name, {
        udpSize: 65_535,
        flags: 0xffff,
        options: options([UNKNOWN_OPTION, 0], [0, 4], [65_535, 200]),
      }),
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'exchange',
    id: 'P9',
    what: 'signed messages (TSIG) pass unchanged, including their case',
    query: (name) =>
      askOpt(
        name.map((label) => label.toUpperCase()),
        {},
        { additionals: [opt(), tsig()] },
      ),
    answer: (asking) => [own(asking, { additionals: [opt(), tsig()] })],
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'script',
    id: 'P10',
    what: 'forwarded queries have other ids and ports than the client’s',
    run: async (world) => {
      const count = 96
      const client = await world.udp()
      const name = world.name()
      for (let i = 0; i < count; i++) {
        client.send(mkMessage(ask([`p${i}`, ...name], { id: 7 })))
        // One at a time, because queries of one batch share a socket.
        await client.inbox.at(i)
      }
      const asked = Array.from({ length: count }, (_, i) =>
        world.upstream.asked([`p${i}`, ...name]),
      )
      const seen = asked.flatMap(({ items }) => items)
      client.close()
      const ids = new Set(seen.map(({ id }) => id))
      const ports = new Set(seen.map(({ port }) => port))
      assert.ok(ids.size > count * 0.9, `${ids.size} ids`)
      assert.ok(ports.size >= 16, `${ports.size} ports`)
      assert.ok(Math.min(...ports) >= 1024)
    },
  },
  {
    kind: 'tests',
    id: 'P10',
    what: 'their ids and ports are spread evenly',
    tests: [
      [
        'test/proxy/upstream/upstream.test.ts',
        'Upstream spreads queries over random ports and ids',
      ],
    ],
  },
  ...MALFORMED_QUERIES,
  ...MALFORMED_ANSWERS,
  {
    kind: 'script',
    id: 'P12',
    what: 'a host that is no endpoint gets no service at any address',
    note: 'docs/spec/semantics 4: an unknown client gets REFUSED, EDE 18; an address that is not intercepted does not answer',
    run: askedFromOutside,
  },
  {
    kind: 'exchange',
    id: 'P13',
    what: 'an allowed query passes unchanged, a denied one gets REFUSED',
    query: (name) => askOpt(name),
    answer: (asking) => [
      own(asking, {
        authorities: [a('ns.elsewhere.test', '192.0.2.77')],
        additionals: [a('x.elsewhere.test', '192.0.2.78'), opt()],
      }),
    ],
    allowed: 'passes',
    inEveryMode: true,
    teaches: true,
  },
]

/** A TSIG record (RFC 8945 4.2) with an unknown key. */
function tsig() {
  const rdata = [
    ...wireName('hmac-sha256'),
    ...bytes(6),
    1,
    44,
    0,
    4,
    ...bytes(4),
    0x12,
    0x34,
    0,
    0,
    0,
    0,
  ]
  return { owner: 'Key.Example', type: 250, class: 255, ttl: 0, data: Uint8Array.from(rdata) }
}
