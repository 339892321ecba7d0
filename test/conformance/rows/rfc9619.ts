// docs/spec/correctness 1.6: RFC 9619, the number of questions.

import assert from 'node:assert/strict'
import { assertSame, FORMERR, NOTIMP, NXDOMAIN, QR, RA, RD, withId } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { ALLOWED, REFUSED } from '../lab/world.ts'
import { ask, askOpt, own, ownRecord } from './build.ts'
import type { Row } from './row.ts'
import { opt } from '../../support/messages.ts'

const TWO = { rcode: FORMERR }
const NONE = { rcode: NOTIMP }
const PASSED_RCODES = [1, 2, 4, 5]

export const RFC_9619: readonly Row[] = [
  ...[0, 1].map((place): Row => ({
    kind: 'exchange',
    id: 'Q1',
    what: `two questions get FORMERR, with the name in either one: ${place === 0 ? 'first' : 'second'}`,
    query: (name) => {
      const other = { name: ['other', ...(name.at(-2) === REFUSED[0] ? ALLOWED : REFUSED)] }
      const questions = place === 0 ? [{ name }, other] : [other, { name }]
      return ask(name, { questions, additionals: [opt()] })
    },
    allowed: TWO,
    refused: TWO,
  })),
  {
    kind: 'exchange',
    id: 'Q2',
    what: 'no question gets NOTIMP, not FORMERR',
    query: () => ask([], { questions: [] }),
    allowed: NONE,
    refused: NONE,
  },
  {
    kind: 'exchange',
    id: 'Q2',
    what: 'no question, but an OPT (RFC 7873 5.4), also gets NOTIMP',
    query: () => askOpt([], {}, { questions: [] }),
    allowed: NONE,
    refused: NONE,
  },
  ...PASSED_RCODES.map((rcode): Row => ({
    kind: 'exchange',
    id: 'Q3',
    what: `an answer without question passes with RCODE ${rcode}, and teaches nothing`,
    query: (name) => ask(name),
    answer: (asking) => [
      answerTo(asking, {
        questions: [],
        flags: QR | RD | RA | rcode,
        answers: [ownRecord(asking)],
      }),
    ],
    allowed: 'passes',
    teaches: false,
  })),
  ...[0, NXDOMAIN].map((rcode): Row => ({
    kind: 'exchange',
    id: 'Q3',
    what: `an answer without question and with RCODE ${rcode} is ignored: the next one counts`,
    query: (name) => ask(name),
    answer: (asking) => [
      answerTo(asking, { questions: [], flags: QR | RD | RA | rcode }),
      own(asking),
    ],
    allowed: ({ got, answered }) => {
      const right = answered.find((each) => each.length > 12)
      assert.ok(right)
      assertSame(got, withId(right, Buffer.from(got).readUInt16BE(0)), 'the right answer')
    },
    teaches: true,
  })),
]
