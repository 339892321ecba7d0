// docs/spec/correctness 1.8: negative answers. They pass unchanged, and an address beside them teaches nothing.

import { NXDOMAIN, QR, RA, RD } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { ask, bytes, own, ownRecord, SOA } from './build.ts'
import type { Row } from './row.ts'
import { concat, wireName, type MkRecord } from '../../support/messages.ts'

const NO_CACHE = 'namegate has no cache'

/** RFC 1035 3.3.13. */
function soa(): MkRecord {
  return {
    owner: 'ok.test',
    type: SOA,
    data: concat(wireName('ns.ok.test'), wireName('root.ok.test'), bytes(20)),
  }
}

export const RFC_2308: readonly Row[] = [
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
