// docs/spec/correctness 1.3: RFC 6891, EDNS(0).

import assert from 'node:assert/strict'
import { AD, assertSame, BADVERS, CD, DO, FORMERR, QR, RA, RD, TC, withId } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { expectPassed } from '../exchange.ts'
import {
  ask,
  askOpt,
  mismatchThen,
  COOKIE,
  NSID,
  options,
  own,
  sized,
  truncated,
  UNKNOWN_OPTION,
} from './build.ts'
import { DENIED, type Row } from './row.ts'
import { mkMessage, opt, OPT, QUERY_FLAGS, type MkMessage } from '../../support/messages.ts'

const CUT = QR | TC | RD | RA
const BAD = { rcode: FORMERR }

export const RFC_6891: readonly Row[] = [
  {
    kind: 'exchange',
    id: 'E1',
    what: 'a query without OPT gets an answer without OPT',
    query: (name) => ask(name),
    allowed: 'passes',
    refused: { ...DENIED, opt: false },
  },
  {
    kind: 'exchange',
    id: 'E2',
    what: 'every local answer to a query with OPT has one: refusals',
    query: (name) => askOpt(name),
    allowed: 'passes',
    refused: { ...DENIED, opt: true },
  },
  {
    kind: 'exchange',
    id: 'E2',
    what: 'every local answer to a query with OPT has one: TC',
    query: (name) => askOpt(name, { udpSize: 1232 }),
    answer: (asking) => mismatchThen(asking, () => sized(asking, 2000)),
    allowed: ({ got, query }) => assertSame(got, truncated(query, CUT, {}), 'with OPT'),
    over: ['udp'],
  },
  ...malformed('E2', 'every local answer to a query with OPT has one', (name) =>
    askOpt(name, {}, { trailing: Uint8Array.of(1) }),
  ),
  ...malformed('E3', 'two OPT records', (name) => ask(name, { additionals: [opt(), opt()] })),
  ...[1, 100, 255].map((version): Row => ({
    kind: 'exchange',
    id: 'E4',
    what: `version ${version} gets BADVERS under version 0`,
    query: (name) => askOpt(name, { version }),
    allowed: { rcode: BADVERS },
    refused: { rcode: BADVERS },
  })),
  {
    kind: 'exchange',
    id: 'E5',
    what: 'unknown and repeated options in any order pass, and a refusal echoes none',
    query: (name) =>
      askOpt(name, {
        options: options(
          [UNKNOWN_OPTION, 5],
          [NSID, 0],
          [COOKIE, 8],
          [UNKNOWN_OPTION, 0],
          [NSID, 0],
        ),
      }),
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'E6',
    what: 'unknown EDNS flags pass, and a refusal has them as zero',
    query: (name) => askOpt(name, { flags: 0x7fff }),
    allowed: 'passes',
  },
  ...[0, 100, 511].map((udpSize): Row => ({
    kind: 'exchange',
    id: 'E7',
    what: `a UDP size of ${udpSize} is 512: 512 octets pass`,
    query: (name) => askOpt(name, { udpSize }),
    answer: (asking) => mismatchThen(asking, () => sized(asking, 512)),
    allowed: ({ got, answered }) =>
      assertSame(got, withId(answered[1] ?? Buffer.alloc(0), got[0]! * 256 + got[1]!), 'whole'),
    over: ['udp'],
  })),
  {
    kind: 'exchange',
    id: 'E7',
    what: 'a UDP size of 100 is 512: 513 octets are truncated',
    query: (name) => askOpt(name, { udpSize: 100 }),
    answer: (asking) => mismatchThen(asking, () => sized(asking, 513)),
    allowed: ({ got, query }) => assertSame(got, truncated(query, CUT, {}), 'cut'),
    over: ['udp'],
  },
  ...malformed('E8', 'an option longer than its OPT', (name) =>
    askOpt(name, { options: Uint8Array.of(0, 3, 0, 9, 1) }),
  ),
  ...malformed('E8', 'half an option', (name) => askOpt(name, { options: Uint8Array.of(0, 3, 0) })),
  ...malformed('E8', 'RDATA of OPT past the end', (name) => askOpt(name, { rdlength: 7 })),
  ...malformed('E9', 'an OPT whose owner is not the root', (name) => askOpt(name, { owner: 'x' })),
  {
    kind: 'exchange',
    id: 'E10',
    what: 'messages that pass keep their OPT unchanged, both ways',
    query: (name) =>
      askOpt(name, { udpSize: 4321, flags: DO, options: options([UNKNOWN_OPTION, 9]) }),
    answer: (asking) => [
      own(asking, {
        additionals: [opt({ udpSize: 777, flags: DO | 5, options: options([15, 20], [15, 2]) })],
      }),
    ],
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'exchange',
    id: 'E11',
    what: 'a truncated answer has header, question and OPT, with the DO of the query',
    query: (name) => askOpt(name, { udpSize: 600, flags: DO }, { flags: QUERY_FLAGS | CD }),
    answer: (asking) => mismatchThen(asking, () => sized(asking, 1000, [opt()])),
    allowed: ({ got, query }) =>
      assertSame(got, truncated(query, CUT, { flags: DO }), 'header, question, OPT'),
    over: ['udp'],
  },
  {
    kind: 'script',
    id: 'E12',
    what: 'a UDP size holds only for its own query',
    run: async (world) => {
      const [first, second] = [world.name(), world.name()]
      for (const name of [first, second]) {
        world.upstream.on(name, (asked) => {
          const asking = { ...asked, address: '198.19.255.3' }
          for (const each of mismatchThen(asking, () => sized(asking, 900))) asked.send(each)
        })
      }
      const client = await world.udp()
      client.send(mkMessage(askOpt(first, { udpSize: 4096 }, { id: 1 })))
      assert.equal((await client.inbox.at(0)).octets.length, 900)
      const plain: MkMessage = ask(second, { id: 2 })
      client.send(mkMessage(plain))
      assertSame((await client.inbox.at(1)).octets, truncated(plain, CUT), 'cut')
      client.close()
    },
  },
  {
    kind: 'exchange',
    id: 'E13',
    what: 'DO, CD and AD pass both ways',
    query: (name) => askOpt(name, { flags: DO }, { flags: QUERY_FLAGS | AD | CD }),
    answer: (asking) => [
      answerTo(asking, {
        flags: QR | RD | RA | AD | CD,
        answers: own0(asking),
        additionals: [opt({ flags: DO })],
      }),
    ],
    allowed: expectPassed,
    teaches: true,
  },
]

function own0(asking: Parameters<typeof own>[0]) {
  const data = Uint8Array.from(asking.address.split('.'), Number)
  return [{ owner: asking.question.name, type: 1, data }]
}

function malformed(
  id: string,
  what: string,
  query: (name: readonly string[]) => MkMessage,
): readonly Row[] {
  const hasOpt = (query([]).additionals ?? []).some(({ type }) => type === OPT)
  const expected = { ...BAD, opt: hasOpt }
  return [
    { kind: 'exchange', id, what: `${what}: FORMERR`, query, allowed: expected, refused: expected },
  ]
}
