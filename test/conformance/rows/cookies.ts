// docs/spec/correctness 1.10: RFC 7873, cookies.

import assert from 'node:assert/strict'
import { FORMERR } from '../lab/replies.ts'
import { REFUSED } from '../lab/world.ts'
import { askOpt, COOKIE, options, own } from './build.ts'
import type { Row } from './row.ts'
import { opt } from '../../support/messages.ts'

const LEGAL = [8, 16, 24, 40]
const ILLEGAL = [0, 7, 9, 15, 41]

export const RFC_7873: readonly Row[] = [
  ...LEGAL.map((size): Row => ({
    kind: 'exchange',
    id: 'C1',
    what: `a cookie of ${size} octets passes, and so does the server’s`,
    query: (name) => askOpt(name, { options: options([COOKIE, size]) }),
    answer: (asking) => [own(asking, { additionals: [opt({ options: options([COOKIE, 24]) })] })],
    allowed: 'passes',
    teaches: true,
  })),
  ...ILLEGAL.map((size): Row => ({
    kind: 'exchange',
    id: 'C2',
    what: `a cookie of ${size} octets gets FORMERR`,
    query: (name) => askOpt(name, { options: options([COOKIE, size]) }),
    allowed: { rcode: FORMERR },
    refused: { rcode: FORMERR },
  })),
  {
    kind: 'exchange',
    id: 'C3',
    what: 'a client with a server cookie gets refusals, without a cookie',
    note: 'the cookie is another server’s, so namegate cannot put one in a refusal',
    query: (name) => askOpt(name, { options: options([COOKIE, 24]) }),
    answer: (asking) => [own(asking, { additionals: [opt({ options: options([COOKIE, 24]) })] })],
    allowed: 'passes',
  },
  {
    kind: 'script',
    id: 'C3',
    what: 'dig +cookie for an allowed name twice, then for a refused one: no timeout',
    run: async (world) => {
      const host = world.mode === 'redirect' ? world.lab.node : world.lab.pods[0]?.host
      assert.ok(host)
      const from = world.clientAddress()
      const allowed = world.name().join('.')
      const refused = world.name(REFUSED).join('.')
      const statuses: string[] = []
      for (const name of [allowed, allowed, refused]) {
        const args = [
          '+cookie',
          '+tries=1',
          '+time=10',
          '-b',
          from,
          `@${world.asked.address}`,
          name,
        ]
        const { stdout } = await host.run('dig', args, { limitMs: 30_000 })
        statuses.push(/status: (\w+)/.exec(stdout)?.[1] ?? stdout)
      }
      assert.deepEqual(statuses, ['NOERROR', 'NOERROR', 'REFUSED'])
    },
  },
]
