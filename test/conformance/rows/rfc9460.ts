// docs/spec/correctness 1.7: SVCB and HTTPS. Each answer passes byte for byte. Its hint is the exchange's own address, so a label on this
// address can come only from this answer.

import { answerTo } from '../lab/upstream.ts'
import { ask, bytes } from './build.ts'
import type { Asking, Row } from './row.ts'
import {
  a,
  cname,
  HTTPS,
  QUERY_FLAGS,
  service,
  SVCB,
  type MkMessage,
  type MkRecord,
  type Name,
} from '../../support/messages.ts'

const TARGET = 'target.ok.test'
const SCENARIOS = 'test/scenarios/scenarios.test.ts'
/** Keys of RFC 9460 14.3.2. */
const ALPN = 1
const PORT = 3
const IPV4_HINT = 4
const ECH = 5
const UNKNOWN = 0xfde8

type Params = Parameters<typeof service>[2]
type Change = (asking: Asking, hint: readonly number[]) => MkMessage

const name = ({ question }: Asking): Name => question.name
const octetsOf = ({ address }: Asking): readonly number[] => address.split('.').map(Number)

function record(asking: Asking, params: Params, change: Partial<MkRecord> = {}): MkRecord {
  return { owner: name(asking), type: HTTPS, data: service(1, '', params), ...change }
}

const ech = (hint: readonly number[]): Params => [
  [ALPN, [2, 104, 50]],
  [IPV4_HINT, hint],
  [ECH, [...bytes(40)]],
]

const TEACHING: readonly (readonly [id: string, what: string, change: Change])[] = [
  ['S2', 'an address hint', (q, hint) => ({ answers: [record(q, [[IPV4_HINT, hint]])] })],
  [
    'S2',
    'an address hint of an SVCB record',
    (q, hint) => ({ answers: [record(q, [[IPV4_HINT, hint]], { type: SVCB })] }),
  ],
  [
    'S2',
    'an address hint at the end of a chain',
    (q, hint) => ({
      answers: [cname(name(q), TARGET), record(q, [[IPV4_HINT, hint]], { owner: TARGET })],
    }),
  ],
  [
    'S2',
    'a hint of a record whose TargetName is another name: the record answers the asked name',
    (q, hint) => ({
      answers: [record(q, [], { data: service(1, 'far.test', [[IPV4_HINT, hint]]) })],
    }),
  ],
  ['S6', 'a hint beside ech, which stays', (q, hint) => ({ answers: [record(q, ech(hint))] })],
]

const SILENT: readonly (readonly [id: string, what: string, change: Change])[] = [
  [
    'S2',
    'a hint of a record that the chain does not reach',
    (q, hint) => ({ answers: [record(q, [[IPV4_HINT, hint]], { owner: 'foreign.ok.test' })] }),
  ],
  [
    'S2',
    'a hint in the additional section',
    (q, hint) => ({ answers: [], additionals: [record(q, [[IPV4_HINT, hint]])] }),
  ],
  [
    'S3',
    'AliasMode, where the client asks the target next: an address beside it',
    (q, hint) => ({
      answers: [
        record(q, [], { data: service(0, TARGET, [[IPV4_HINT, hint]]) }),
        a(TARGET, q.address),
      ],
    }),
  ],
  [
    'S5',
    'keys that are not in ascending order',
    (q, hint) => ({
      answers: [
        record(q, [
          [PORT, [1, 187]],
          [ALPN, []],
          [IPV4_HINT, hint],
        ]),
      ],
    }),
  ],
  [
    'S5',
    'a value past RDATA',
    (q, hint) => {
      const data = service(1, '', [
        [IPV4_HINT, hint],
        [UNKNOWN, [...bytes(4)]],
      ])
      return { answers: [record(q, [], { data: data.subarray(0, -1) })] }
    },
  ],
  [
    'S5',
    'a hint of 5 octets',
    (q, hint) => ({ answers: [record(q, [[IPV4_HINT, [...hint, 0]]])] }),
  ],
  ['S5', 'an empty hint', (q) => ({ answers: [record(q, [[IPV4_HINT, []]])] })],
]

export const RFC_9460: readonly Row[] = [
  {
    kind: 'exchange',
    id: 'S1',
    what: 'an HTTPS record with unknown parameters passes',
    query: (asked) => ask(asked, { questions: [{ name: asked, type: HTTPS }] }),
    answer: (asking) => [
      answerTo(asking, { answers: [record(asking, [[UNKNOWN, [...bytes(4)]]])] }),
    ],
    allowed: 'passes',
  },
  ...TEACHING.map((each) => mkRow(each, 'teaches', true)),
  ...SILENT.map((each) => mkRow(each, 'teaches nothing', false)),
  {
    kind: 'exchange',
    id: 'S4',
    what: 'a name with a port prefix, under a pattern for names below the host: teaches',
    note: 'the name is another one: a rule for api.example.com alone does not match it, one for **.api.example.com does',
    query: (asked) =>
      ask(asked, { questions: [{ name: ['_8443', '_https', ...asked], type: HTTPS }] }),
    answer: (asking) => [
      answerTo(asking, { answers: [record(asking, [[IPV4_HINT, octetsOf(asking)]])] }),
    ],
    allowed: 'passes',
    teaches: true,
  },
  {
    kind: 'tests',
    id: 'S2',
    what: 'hints that are stripped or passed instead',
    tests: [
      [SCENARIOS, 'svcb-learn.scn'],
      [SCENARIOS, 'svcb-strip.scn'],
      [SCENARIOS, 'svcb-pass.scn'],
    ],
  },
  {
    kind: 'tests',
    id: 'S6',
    what: 'stripping hints keeps ech, and removes signatures over changed records, with and without DO',
    tests: [
      ['test/dns/svcb-strip.test.ts', 'removes every hint; alpn, port and ech stay (S6)'],
      ['test/dns/answer-strip.test.ts', 'removes signatures over changed records'],
    ],
  },
  {
    kind: 'tests',
    id: 'S5',
    what: 'every malformed parameter, every truncation and every changed octet',
    tests: [
      ['test/dns/svcb.test.ts', '1.7: which SVCB and HTTPS records teach'],
      ['test/dns/svcb.test.ts', 'every cut and every changed octet'],
    ],
  },
]

function mkRow(
  [id, what, change]: readonly [id: string, what: string, change: Change],
  verb: string,
  teaches: boolean,
): Row {
  return {
    kind: 'exchange',
    id,
    what: `${what}: ${verb}`,
    query: (asked) => ask(asked, { flags: QUERY_FLAGS, questions: [{ name: asked, type: HTTPS }] }),
    answer: (asking) => [answerTo(asking, change(asking, octetsOf(asking)))],
    allowed: 'passes',
    teaches,
  }
}
