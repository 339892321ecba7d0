// CORRECTNESS 1.7 and 1.8: what of them holds today, and what comes with a later part of namegate or never.

import { NXDOMAIN, QR, RA, RD } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { ask, bytes, own, ownRecord, SOA } from './build.ts'
import type { Asking, Row } from './row.ts'
import { concat, wireName, type MkRecord } from '../../support/messages.ts'

const HTTPS = 65
const HINTS = 'hints are passed on and not learned yet: dns.svcb has its default, pass, alone'
const NO_CACHE = 'nothing is answered from a cache'

/** RFC 9460 2.2: priority, target, then keys that nobody knows. */
function https({ question }: Asking): MkRecord {
  const unknown = concat(Uint8Array.of(0xfd, 0xe8, 0, 4), bytes(4))
  return {
    owner: question.name,
    type: HTTPS,
    data: concat(Uint8Array.of(0, 1), wireName([]), unknown),
  }
}

/** RFC 1035 3.3.13. */
function soa(): MkRecord {
  return {
    owner: 'ok.test',
    type: SOA,
    data: concat(wireName('ns.ok.test'), wireName('root.ok.test'), bytes(20)),
  }
}

export const NOT_YET: readonly Row[] = [
  {
    kind: 'exchange',
    id: 'S1',
    what: 'an HTTPS record with unknown parameters passes',
    query: (name) => ask(name, { questions: [{ name, type: HTTPS }] }),
    answer: (asking) => [own(asking, { answers: [https(asking)] })],
    allowed: 'passes',
  },
  ...['S2', 'S3', 'S4', 'S5', 'S6'].map((id): Row => ({
    kind: 'left-out',
    id,
    what: 'SVCB and HTTPS beyond passing',
    reason: HINTS,
  })),
  {
    kind: 'exchange',
    id: 'N1',
    what: 'NXDOMAIN passes with its SOA, and an address beside it teaches nothing',
    query: (name) => ask(name),
    answer: (asking) => [
      answerTo(asking, {
        flags: QR | RD | RA | NXDOMAIN,
        authorities: [soa()],
        additionals: [ownRecord(asking)],
      }),
    ],
    allowed: 'passes',
    teaches: false,
  },
  {
    kind: 'exchange',
    id: 'N1',
    what: 'no data passes with its SOA',
    query: (name) => ask(name),
    answer: (asking) => [answerTo(asking, { authorities: [soa()] })],
    allowed: 'passes',
  },
  {
    kind: 'exchange',
    id: 'N2',
    what: 'NXDOMAIN with an address in the answer section passes and teaches nothing',
    note: 'the other RCODEs are rows of A7',
    query: (name) => ask(name),
    answer: (asking) => [own(asking, { flags: QR | RD | RA | NXDOMAIN })],
    allowed: 'passes',
    teaches: false,
  },
  ...['N3', 'N4'].map((id): Row => ({
    kind: 'left-out',
    id,
    what: 'negative answers from a cache',
    reason: NO_CACHE,
  })),
]
