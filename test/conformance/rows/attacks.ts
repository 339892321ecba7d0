// docs/spec/correctness 2: the attacks with a script of their own, those that other tests prove, and one that is impossible here. The rows
// are in the order of their ids.

import { A7 } from './teaching.ts'
import { FORGERY } from './forgery.ts'
import { MESSAGES } from './messages.ts'
import type { Row } from './row.ts'
import { crowd, idsOfOthers, lateFlood, oneAnswerEach, shed } from './crowds.ts'
import {
  guarded,
  hostileNames,
  otherTransport,
  prefixesOfAnswers,
  prefixesOfQueries,
  spoofed,
} from './hostile.ts'
import { neverRead, pipelinedRefusals, slowloris } from './slow-clients.ts'

const of = (id: string): readonly Row[] => MESSAGES.filter((row) => row.id === id)
const SCENARIOS = 'test/scenarios/scenarios.test.ts'

export const ATTACKS: readonly Row[] = [
  ...FORGERY,
  ...A7,
  {
    kind: 'left-out',
    id: 'A8',
    what: 'an answer from the server of one zone about another',
    reason: 'there are no servers by zone: every configured server gets every query',
  },
  {
    kind: 'script',
    id: 'A9',
    what: 'odd octets in labels: policy reads labels, octets stay unchanged, texts for people escape them',
    run: hostileNames,
  },
  {
    kind: 'script',
    id: 'A10',
    what: 'clients with one id and one port, answers in reverse order: each gets its own answer, in its own case',
    run: idsOfOthers,
  },
  {
    kind: 'script',
    id: 'A11',
    what: 'a client that fills its share at a silent server gets refusals, and later its whole share again',
    run: shed,
    alone: 'quiet',
  },
  {
    kind: 'tests',
    id: 'A11',
    what: '70,000 queries to a silent server: the bound of all queries and of memory holds, and all is free afterwards',
    tests: [
      [
        'test/proxy/messages/in-flight.test.ts',
        'Upstream refuses with a named result at 65,536 queries',
      ],
    ],
  },
  ...of('A12'),
  ...of('A13'),
  {
    kind: 'script',
    id: 'A14',
    what: '5,000 queries, all answered at once: late answers do not reach the client; of answers in time at most its share does',
    run: lateFlood,
    alone: 'quiet',
  },
  ...of('A15'),
  {
    kind: 'script',
    id: 'A16',
    what: 'addresses that no name can open, such as private ones, those of pods and of the API server, pass and get no label',
    run: guarded,
  },
  {
    kind: 'tests',
    id: 'A16',
    what: 'with dns.guard: strip they leave neither as records nor as hints',
    tests: [
      [SCENARIOS, 'guard-strip.scn'],
      ['test/property/strip-mutation.test.ts', 'leaves what the model leaves'],
    ],
  },
  ...of('A17'),
  ...of('A18'),
  {
    kind: 'script',
    id: 'A19',
    what: 'every prefix of a query: silence below 12 octets, FORMERR from there',
    run: prefixesOfQueries,
  },
  {
    kind: 'script',
    id: 'A19',
    what: 'every prefix of an answer: ignored without its question, SERVFAIL and EDE 24 with it',
    run: prefixesOfAnswers,
  },
  ...of('A20'),
  {
    kind: 'script',
    id: 'A21',
    what: 'single octets on every connection that a client can have: closed in time, with little memory',
    run: slowloris,
    alone: 'quiet',
  },
  {
    kind: 'script',
    id: 'A21',
    what: 'a client that never reads does not delay others, and its answers take little memory',
    run: neverRead,
    alone: 'quiet',
  },
  {
    kind: 'tests',
    id: 'A21',
    what: 'bounds, times and slow readers one by one',
    tests: [['test/proxy/server/tcp-limits.test.ts', '']],
  },
  {
    kind: 'script',
    id: 'A22',
    what: '200,000 refused queries in one write on one connection are all answered, with little memory',
    run: pipelinedRefusals,
    alone: 'quiet',
  },
  ...of('A23'),
  {
    kind: 'script',
    id: 'A23',
    what: 'at most one answer per query, however often the server answers; no answer to less than 12 octets',
    run: oneAnswerEach,
  },
  {
    kind: 'tests',
    id: 'A23',
    what: 'source port 0, broadcast and multicast sources: no answer',
    tests: [
      [
        'test/kernel/sockets/udp-native.test.ts',
        'Datagrams drops a query whose sender cannot get an answer',
      ],
      ['test/proxy/sockets/udp.test.ts', 'UdpListener is silent about replies and scraps'],
    ],
  },
  {
    kind: 'script',
    id: 'A24',
    what: 'a query from another endpoint’s address is not forwarded and teaches nothing',
    note: 'in explicit mode the kernel’s reverse path (rp_filter) replaces the check of the interface',
    run: spoofed,
    only: {
      modes: ['explicit', 'tproxy'],
      reason:
        'mode redirect has one network namespace, in which all addresses belong to one endpoint',
    },
  },
  {
    kind: 'tests',
    id: 'A24',
    what: 'the interface of a query must be its endpoint’s; the datapath checks sources of all other packets',
    tests: [
      ['test/kernel/policy/attribution.test.ts', ''],
      [
        'test/proxy/pipeline/client-endpoints.test.ts',
        'Arrivals admits a query on the interface of its endpoint',
      ],
    ],
  },
  {
    kind: 'tests',
    id: 'A25',
    what: 'what one endpoint learned opens for another only what the other’s policy selects, or nothing',
    tests: [
      [SCENARIOS, 'learned-by-another.scn'],
      [SCENARIOS, 'learning-endpoint.scn'],
      [SCENARIOS, 'one-rule-removed.scn'],
      ['test/kernel/policy/learning.test.ts', ''],
    ],
  },
  {
    kind: 'tests',
    id: 'A26',
    what: 'TTLs outlive no policy',
    note: 'the rows of L1 to L3 test the same over the wire',
    tests: [
      [SCENARIOS, 'ttl-games.scn'],
      [SCENARIOS, 'selector-later.scn'],
    ],
  },
  {
    kind: 'tests',
    id: 'A27',
    what: 'no answer before the kernel enforces what it teaches',
    tests: [
      [SCENARIOS, 'first-answer.scn'],
      [SCENARIOS, 'kernel-refuses-prefix.scn'],
      ['test/kernel/packets/first-packet.test.ts', ''],
    ],
  },
  {
    kind: 'tests',
    id: 'A28',
    what: 'a flood of addresses or identities reaches its bound, and opens less, never more',
    tests: [
      [SCENARIOS, 'address-bound.scn'],
      [SCENARIOS, 'dynamic-identities.scn'],
    ],
  },
  {
    kind: 'tests',
    id: 'A28',
    what: 'eviction removes the least useful address: at an endpoint’s bound from that endpoint, at the bound of all from the largest one',
    tests: [['test/names/eviction/eviction.test.ts', '']],
  },
  {
    kind: 'tests',
    id: 'A29',
    what: 'a label names a selector; the endpoint’s own policy decides what it opens',
    tests: [[SCENARIOS, 'overlapping-selectors.scn']],
  },
  ...of('A30'),
  {
    kind: 'tests',
    id: 'A31',
    what: 'no label of a metric comes from a name',
    note: 'the row of A9 reads /metrics and the log after hostile names',
    tests: [['test/daemon/metrics.test.ts', '']],
  },
  {
    kind: 'script',
    id: 'A32',
    what: 'one client’s slow names starve no other client',
    run: crowd,
  },
  ...of('A33'),
  {
    kind: 'script',
    id: 'A33',
    what: 'a name that policy permits only over one transport is refused over the other',
    run: otherTransport,
  },
]
