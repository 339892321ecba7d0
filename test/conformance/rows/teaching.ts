// docs/spec/correctness 2, A7: which answers teach. Each answer passes byte for byte, and carries the exchange's own address, so a label on
// this address can come only from this answer.

import { QR, RA, RD, TC } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { ask, NS, ownRecord } from './build.ts'
import type { Asking, Row } from './row.ts'
import {
  a,
  CNAME,
  cname,
  DNAME,
  QUERY_FLAGS,
  wireName,
  type MkMessage,
  type MkRecord,
} from '../../support/messages.ts'

const FOREIGN = 'foreign.ok.test'
const MX = 15
const SRV = 33
const RRSIG = 46
const ANY = 255
const LINKS_MAX = 16

interface Case {
  readonly what: string
  readonly change: (asking: Asking) => MkMessage
  /** The type of the query. */
  readonly type?: number
  readonly class?: number
}

const data = ({ address }: Asking): Uint8Array => Uint8Array.from(address.split('.'), Number)
const foreign = (asking: Asking): MkRecord => a(FOREIGN, asking.address)
const name = ({ question }: Asking) => question.name

/** `links` CNAMEs from the question's name, then its address. */
function chain(asking: Asking, links: number): readonly MkRecord[] {
  const at = (i: number) => (i === 0 ? name(asking) : `l${i}.ok.test`)
  const records = Array.from({ length: links }, (_, i) => cname(at(i), at(i + 1)))
  return [...records, a(at(links), asking.address)]
}

/** A chain that returns to its first name after so many steps. */
function loop(asking: Asking, steps: number): readonly MkRecord[] {
  const at = (i: number) => (i % steps === 0 ? name(asking) : `l${i}.ok.test`)
  const records = Array.from({ length: steps }, (_, i) => cname(at(i), at(i + 1)))
  return [...records, ownRecord(asking)]
}

const SILENT: readonly Case[] = [
  { what: 'a foreign owner in the answer section', change: (q) => ({ answers: [foreign(q)] }) },
  {
    what: 'a foreign owner in the authority section',
    change: (q) => ({ answers: [], authorities: [foreign(q)] }),
  },
  {
    what: 'a foreign owner in the additional section',
    change: (q) => ({ answers: [], additionals: [foreign(q)] }),
  },
  {
    what: 'the name itself, but in the authority section',
    change: (q) => ({ answers: [], authorities: [ownRecord(q)] }),
  },
  {
    what: 'the name itself, but in the additional section',
    change: (q) => ({ answers: [], additionals: [ownRecord(q)] }),
  },
  ...[
    ['NS', NS, 0],
    ['MX', MX, 2],
    ['SRV', SRV, 6],
  ].map(([word, type, octets]) => ({
    what: `glue of ${String(word)}`,
    type: Number(type),
    change: (q: Asking): MkMessage => ({
      answers: [
        {
          owner: name(q),
          type: Number(type),
          data: Uint8Array.from([...new Uint8Array(Number(octets)), ...wireName(FOREIGN)]),
        },
      ],
      additionals: [foreign(q)],
    }),
  })),
  { what: 'class CH', class: 3, change: (q) => ({ answers: [{ ...ownRecord(q), class: 3 }] }) },
  { what: 'a record of class CH', change: (q) => ({ answers: [{ ...ownRecord(q), class: 3 }] }) },
  ...[1, 2, 3, 5].map((rcode) => ({
    what: `RCODE ${rcode}`,
    change: (q: Asking): MkMessage => ({ flags: QR | RD | RA | rcode, answers: [ownRecord(q)] }),
  })),
  {
    what: 'RRSIG alone',
    change: (q) => ({ answers: [{ owner: name(q), type: RRSIG, data: data(q) }] }),
  },
  {
    what: 'a CNAME to one name and the address of another',
    change: (q) => ({ answers: [cname(name(q), 'target.ok.test'), foreign(q)] }),
  },
  ...[1, 2, 3].map((steps) => ({
    what: `a CNAME loop of ${steps}`,
    change: (q: Asking): MkMessage => ({ answers: loop(q, steps) }),
  })),
  {
    what: `a chain of ${LINKS_MAX + 1} links`,
    change: (q) => ({ answers: chain(q, LINKS_MAX + 1) }),
  },
  {
    what: 'two CNAMEs of one name',
    change: (q) => ({
      answers: [
        cname(name(q), 'one.ok.test'),
        cname(name(q), 'two.ok.test'),
        a('two.ok.test', q.address),
      ],
    }),
  },
  ...[3, 5, 0].map((size) => ({
    what: `an A record of ${size} octets`,
    change: (q: Asking): MkMessage => ({
      answers: [
        { owner: name(q), type: 1, data: Uint8Array.from([...data(q), 0]).subarray(0, size) },
      ],
    }),
  })),
  {
    what: 'an AAAA record of 4 octets',
    type: 28,
    change: (q) => ({ answers: [{ owner: name(q), type: 28, data: data(q) }] }),
  },
]

const TEACHING: readonly Case[] = [
  { what: 'the address of the name', change: (q) => ({ answers: [ownRecord(q)] }) },
  { what: 'QTYPE ANY', type: ANY, change: (q) => ({ answers: [ownRecord(q)] }) },
  {
    what: 'an answer with TC',
    change: (q) => ({ flags: QR | RD | RA | TC, answers: [ownRecord(q)] }),
  },
  { what: `a chain of ${LINKS_MAX} links`, change: (q) => ({ answers: chain(q, LINKS_MAX) }) },
  {
    what: 'a chain in the reverse order',
    change: (q) => ({ answers: chain(q, 3).toReversed() }),
  },
  {
    what: 'a DNAME with its synthesised CNAME',
    change: (q) => ({
      answers: [
        { owner: 'ok.test', type: DNAME, data: wireName('else.test') },
        { owner: name(q), type: CNAME, data: { name: 'n.else.test' } },
        a('n.else.test', q.address),
      ],
    }),
  },
]

export const A7: readonly Row[] = [
  ...SILENT.map((each) => mkRow(each, 'teaches nothing', false)),
  ...TEACHING.map((each) => mkRow(each, 'teaches', true)),
]

function mkRow(given: Case, verb: string, teaches: boolean): Row {
  const { what, change, type = 1, class: qclass = 1 } = given
  return {
    kind: 'exchange',
    id: 'A7',
    what: `${what}: ${verb}`,
    query: (asked) =>
      ask(asked, { flags: QUERY_FLAGS, questions: [{ name: asked, type, class: qclass }] }),
    answer: (asking) => [answerTo(asking, change(asking))],
    allowed: 'passes',
    teaches,
  }
}
