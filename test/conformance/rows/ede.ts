// docs/spec/correctness 1.11: RFC 8914, Extended DNS Errors, by the table of docs/spec/semantics 4.

import assert from 'node:assert/strict'
import { assertSame, localAnswer, QR, RA, RD, SERVFAIL } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { ATTEMPTS } from '../lab/world.ts'
import { ask, askOpt, options, own } from './build.ts'
import { DENIED, type Row } from './row.ts'
import { mkMessage, opt } from '../../support/messages.ts'

export const RFC_8914: readonly Row[] = [
  {
    kind: 'exchange',
    id: '1.11',
    what: 'a name that policy denies: REFUSED, 15 Blocked',
    query: (name) => askOpt(name),
    allowed: 'passes',
    refused: DENIED,
  },
  ...(['ask', 'askOpt'] as const).map((form): Row => ({
    kind: 'exchange',
    id: '1.11',
    what: `an unknown client: REFUSED${form === 'askOpt' ? ', 18 Prohibited' : ', without OPT no extended error'}`,
    query: (name) => (form === 'askOpt' ? askOpt(name) : ask(name)),
    client: 'unknown',
    allowed: { rcode: 5, ede: 18 },
    refused: { rcode: 5, ede: 18 },
  })),
  {
    kind: 'tests',
    id: '1.11',
    what: 'policy not loaded: SERVFAIL, 14 Not Ready',
    tests: [['test/scenarios/scenarios.test.ts', 'not-loaded.scn']],
  },
  {
    kind: 'exchange',
    id: '1.11',
    what: 'the server is silent: SERVFAIL, 22 No Reachable Authority, after at most three attempts',
    query: (name) => askOpt(name),
    answer: () => [],
    allowed: ({ got, query, asked, transport }) => {
      assertSame(got, localAnswer(query, { rcode: SERVFAIL, ede: 22 }), 'SERVFAIL')
      // A forged answer of another row can have the id of this query. The query is then repeated once over TCP.
      const most = transport === 'udp' ? ATTEMPTS + 1 : ATTEMPTS
      const overOwn = asked.filter((each) => each.transport === transport)
      assert.ok(overOwn.length >= 1 && overOwn.length <= ATTEMPTS, `${overOwn.length} attempts`)
      assert.ok(asked.length <= most, `${asked.length} in all`)
    },
  },
  {
    kind: 'script',
    id: '1.11',
    what: 'the server’s port is closed: SERVFAIL, 23 Network Error, and refusals continue',
    alone: 'end',
    run: async (world) => {
      await world.upstream.close()
      const [down, denied] = [world.name(), world.name(['no', 'test'])]
      for (const transport of ['udp', 'tcp'] as const) {
        const query = askOpt(down, {}, { id: 3 })
        const got = await world.ask(transport, mkMessage(query))
        assertSame(got, localAnswer(query, { rcode: SERVFAIL, ede: 23 }), transport)
        const refused = askOpt(denied, {}, { id: 4 })
        assertSame(
          await world.ask(transport, mkMessage(refused)),
          localAnswer(refused, DENIED),
          'refused',
        )
      }
    },
  },
  {
    kind: 'exchange',
    id: '1.11',
    what: 'the answer is unreadable: SERVFAIL, 24 Invalid Data; without OPT no extended error',
    query: (name) => ask(name),
    answer: (asking) => [own(asking, { trailing: Uint8Array.of(7) })],
    allowed: { rcode: SERVFAIL, ede: 24 },
    teaches: false,
  },
  {
    kind: 'tests',
    id: '1.11',
    what: 'an answer that the datapath refused, and one with a guarded address: SERVFAIL, 0 and text',
    tests: [
      ['test/scenarios/scenarios.test.ts', 'kernel-refuses-prefix.scn'],
      ['test/scenarios/scenarios.test.ts', 'degraded-servfail.scn'],
    ],
  },
  {
    kind: 'exchange',
    id: '1.11',
    what: 'the server’s own errors pass, and none is added',
    query: (name) => askOpt(name),
    answer: (asking) => [
      answerTo(asking, {
        flags: QR | RD | RA | SERVFAIL,
        additionals: [opt({ options: options([15, 12], [15, 2]) })],
      }),
    ],
    allowed: 'passes',
  },
  {
    kind: 'tests',
    id: '1.11',
    what: 'a client that cannot use this server: REFUSED, 18 Prohibited',
    tests: [
      [
        'test/kernel/intercept/original-destination.test.ts',
        'refuses a server that policy does not admit',
      ],
    ],
  },
]
