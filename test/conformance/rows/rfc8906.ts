// docs/spec/correctness 1.5: RFC 8906, never fail to answer: its matrix, for an allowed and for a refused name. Every line is also a line
// over TCP, because each is asked over both transports.

import { AD, BADVERS, CD, DO, NOTIMP, QR, RA, RD, TC, Z, assertSame } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import {
  ask,
  askOpt,
  mismatchThen,
  CLIENT_SUBNET,
  COOKIE,
  KEEPALIVE,
  NSID,
  options,
  own,
  sized,
  SOA,
  truncated,
} from './build.ts'
import type { ExchangeRow, Outcome, Row } from './row.ts'
import { QUERY_FLAGS, type MkMessage } from '../../support/messages.ts'

const VERSION = { rcode: BADVERS }
const OPCODE_15 = 0x7800
const PADDING = 12
const SEVERAL = options([NSID, 0], [COOKIE, 8], [CLIENT_SUBNET, 4], [KEEPALIVE, 0], [PADDING, 16])

interface Line {
  readonly what: string
  readonly query: (name: readonly string[]) => MkMessage
  /** The outcome for allowed and refused names. Default: an allowed name passes, policy refuses the other. */
  readonly both?: Outcome
  readonly answer?: ExchangeRow['answer']
}

const EMPTY: ExchangeRow['answer'] = (asking) => [answerTo(asking)]

const LINES: readonly Line[] = [
  {
    what: 'SOA, plain',
    query: (name) => ask(name, { questions: [{ name, type: SOA }] }),
    answer: EMPTY,
  },
  {
    what: 'TYPE1000',
    query: (name) => ask(name, { questions: [{ name, type: 1000 }] }),
    answer: EMPTY,
  },
  { what: 'RD=0', query: (name) => ask(name, { flags: 0 }) },
  { what: 'CD=1', query: (name) => ask(name, { flags: QUERY_FLAGS | CD }) },
  { what: 'AD=1', query: (name) => ask(name, { flags: QUERY_FLAGS | AD }) },
  { what: 'Z=1', query: (name) => ask(name, { flags: QUERY_FLAGS | Z }) },
  {
    what: 'AA, TC, RA and an RCODE in the query',
    query: (name) => ask(name, { flags: QUERY_FLAGS | 0x0400 | TC | RA | 9 }),
  },
  {
    what: 'opcode 15',
    query: (name) => ask(name, { flags: RD | OPCODE_15 }),
    both: { rcode: NOTIMP },
  },
  {
    what: 'opcode 15 with EDNS',
    query: (name) => askOpt(name, {}, { flags: OPCODE_15 }),
    both: { rcode: NOTIMP },
  },
  { what: 'EDNS, plain', query: (name) => askOpt(name) },
  { what: 'EDNS version 1', query: (name) => askOpt(name, { version: 1 }), both: VERSION },
  { what: 'EDNS version 100', query: (name) => askOpt(name, { version: 100 }), both: VERSION },
  { what: 'EDNS option 100', query: (name) => askOpt(name, { options: options([100, 0]) }) },
  { what: 'EDNS flag 0x80', query: (name) => askOpt(name, { flags: 0x80 }) },
  {
    what: 'EDNS version 1 with a flag',
    query: (name) => askOpt(name, { version: 1, flags: 0x80 }),
    both: VERSION,
  },
  {
    what: 'EDNS version 1 with an option',
    query: (name) => askOpt(name, { version: 1, options: options([100, 0]) }),
    both: VERSION,
  },
  { what: 'DO=1', query: (name) => askOpt(name, { flags: DO }) },
  {
    what: 'EDNS version 1 with DO=1',
    query: (name) => askOpt(name, { version: 1, flags: DO }),
    both: VERSION,
  },
  { what: 'several options', query: (name) => askOpt(name, { options: SEVERAL }) },
  {
    what: 'EDNS with UDP size 512 and an answer that fills it',
    query: (name) => askOpt(name, { udpSize: 512 }),
    answer: (asking) => [sized(asking, 512)],
  },
]

export const RFC_8906: readonly Row[] = [
  ...LINES.map(({ what, query, both, answer = (asking) => [own(asking)] }): Row => ({
    kind: 'exchange',
    id: '1.5',
    what,
    query,
    answer,
    allowed: both ?? 'passes',
    ...(both === undefined ? {} : { refused: both }),
  })),
  {
    kind: 'exchange',
    id: '1.5',
    what: 'a truncated answer keeps OPT',
    query: (name) => askOpt(name, { udpSize: 512 }),
    answer: (asking) => mismatchThen(asking, () => sized(asking, 1500)),
    allowed: ({ got, query }) => assertSame(got, truncated(query, QR | TC | RD | RA, {}), 'cut'),
    over: ['udp'],
  },
]
