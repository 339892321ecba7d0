// Contract: the verdict on single packets, as tables with a reason for each row.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { systemClock } from '../../src/core/clock.ts'
import type { DatapathEvent, Mode } from '../../src/datapath/entries.ts'
import { frame, hopByHop, icmp, raw, sctp, SYN, tcp, udp } from '../support/packets.ts'
import {
  batch,
  commit,
  LEARNED,
  PEER_4,
  PEER_6,
  POD,
  POD_4,
  POD_6,
  policy,
  prefix,
  settle,
  WORLD_4,
  WORLD_6,
  type Bench,
  type BenchMaker,
  type PolicyRow,
} from './bench.ts'
import { withBench } from './commits.ts'

type Verdict = 'pass' | 'drop'

/** The clocks are read one after the other, some in milliseconds. */
const CLOCKS_APART_MS = 3

const to443 = tcp({ from: 40000, to: 443 }, SYN)
const out4 = { source: POD_4, target: PEER_4 }
const out6 = { source: POD_6, target: PEER_6 }

/** Both families must agree. */
function judgeBoth(bench: Bench, segment = to443): Verdict {
  const verdicts = [out4, out6].map((route) => bench.judge(POD, 'from', frame(route, segment)))
  assert.equal(verdicts[0], verdicts[1], 'IPv4 and IPv6 agree')
  return verdicts[0] ?? 'drop'
}

const POLICY_ROWS: readonly (readonly [Verdict, readonly PolicyRow[], string])[] = [
  ['drop', [], 'no entry: default deny'],
  ['pass', [{ identity: LEARNED }], 'the identity, any protocol'],
  ['pass', [{ identity: LEARNED, protocol: 6 }], 'the identity, any port of the protocol'],
  ['drop', [{ identity: LEARNED, protocol: 17 }], 'another protocol'],
  ['pass', [{ identity: LEARNED, protocol: 6, port: 443 }], 'the identity and port'],
  ['drop', [{ identity: LEARNED, protocol: 6, port: 444 }], 'another port'],
  ['drop', [{ identity: LEARNED + 1 }], 'another identity'],
  ['pass', [{}], 'any identity'],
  ['pass', [{ protocol: 6, port: 443 }], 'any identity, the port'],
  ['pass', [{ identity: LEARNED, protocol: 6, port: 440, portBits: 14 }], 'port prefix 440-443'],
  ['drop', [{ identity: LEARNED, protocol: 6, port: 444, portBits: 14 }], 'port prefix 444-447'],
  [
    'drop',
    [{}, { identity: LEARNED, protocol: 6, port: 443, verdict: 'deny' }],
    'deny at the identity beats allow at any',
  ],
  [
    'drop',
    [{ identity: LEARNED, protocol: 6, port: 443 }, { verdict: 'deny' }],
    'deny at any beats allow at the identity',
  ],
  ['pass', [{ identity: LEARNED, verdict: 'audit' }, {}], 'allow beats audit'],
  ['pass', [{ identity: LEARNED, verdict: 'audit' }], 'audit passes'],
  ['drop', [{ identity: LEARNED, verdict: 'audit' }, { verdict: 'deny' }], 'deny beats audit'],
  [
    'drop',
    [{ identity: LEARNED }, { identity: LEARNED, protocol: 6, port: 443, verdict: 'deny' }],
    'the longest match at one identity counts: a narrow deny in a broad allow',
  ],
]

export function contractOfVerdicts(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  describe(`${maker.name}: verdicts`, { skip }, () => {
    test('judge looks up identity, class and any, deny over allow over audit', () => {
      withBench(maker, {}, (bench) => {
        for (const [verdict, rows, reason] of POLICY_ROWS) {
          const entries = rows.map((row) => policy(row))
          settle(bench, entries)
          assert.equal(judgeBoth(bench), verdict, reason)
          commit(bench.datapath, { policyRemovals: entries })
        }
      })
    })

    test('judge uses the class of the longest prefix, and the world for an address without a prefix', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        const rows: readonly (readonly [Verdict, number, string, string])[] = [
          ['pass', WORLD_4, PEER_4, 'class of a learned address'],
          ['pass', WORLD_4, '203.0.113.9', 'an unknown address is world-ipv4'],
          ['drop', WORLD_6, '203.0.113.9', 'and not world-ipv6'],
          ['pass', WORLD_6, '2001:db8:9::9', 'an unknown IPv6 address is world-ipv6'],
          ['pass', 11, '10.0.2.1', 'class of an endpoint'],
          ['drop', WORLD_4, '10.0.2.1', 'an endpoint is not the world'],
          ['pass', 12, '10.0.3.1', 'a resource inside a wider prefix'],
          ['pass', LEARNED + 3, '10.0.3.77', 'the wider prefix around it'],
        ]
        commit(bench.datapath, {
          prefixUpserts: batch([
            ['10.0.2.0/24', LEARNED + 1, 11],
            ['10.0.3.1/32', LEARNED + 2, 12],
            ['10.0.3.0/24', LEARNED + 3, WORLD_4],
          ]),
        })
        for (const [verdict, id, target, reason] of rows) {
          const entry = policy({ identity: id })
          commit(bench.datapath, { policyUpserts: [entry] })
          const source = target.includes(':') ? POD_6 : POD_4
          const got = bench.judge(POD, 'from', frame({ source, target }, to443))
          assert.equal(got, verdict, reason)
          commit(bench.datapath, { policyRemovals: [entry] })
        }
      })
    })

    test('judge distinguishes protocols, and judges those without ports by any-port entries', () => {
      withBench(maker, {}, (bench) => {
        const rows: readonly (readonly [Verdict, PolicyRow, Uint8Array, string])[] = [
          ['pass', { protocol: 17, port: 53 }, frame(out4, udp({ from: 1, to: 53 })), 'UDP'],
          ['drop', { protocol: 6, port: 53 }, frame(out4, udp({ from: 1, to: 53 })), 'not TCP'],
          ['pass', { protocol: 132, port: 9 }, frame(out6, sctp({ from: 1, to: 9 })), 'SCTP'],
          ['pass', { protocol: 1 }, frame(out4, icmp(1, 8)), 'ICMP'],
          ['pass', { protocol: 58 }, frame(out6, icmp(58, 128)), 'ICMPv6'],
          ['drop', { protocol: 58 }, frame(out4, icmp(1, 8)), 'ICMP is not ICMPv6'],
          ['pass', {}, frame(out4, raw(47)), 'GRE by an entry for every protocol'],
          ['drop', { protocol: 6 }, frame(out4, raw(47)), 'GRE is not TCP'],
          ['pass', {}, frame(out6, raw(59)), 'no next header'],
        ]
        for (const [verdict, row, octets, reason] of rows) {
          settle(bench, [policy(row)])
          assert.equal(bench.judge(POD, 'from', octets), verdict, reason)
          commit(bench.datapath, { policyRemovals: [policy(row)] })
        }
      })
    })

    test('judge takes a header that does not name the next one as the protocol', () => {
      withBench(maker, {}, (bench) => {
        const rows: readonly (readonly [protocol: number, octets: number])[] = [
          [50, 14],
          [51, 10],
          [135, 6],
          [139, 6],
          [140, 6],
        ]
        for (const [type, octets] of rows) {
          const header = { type, body: new Uint8Array(octets) }
          const hidden = frame({ ...out6, extensions: [hopByHop, header] }, to443)
          settle(bench, [policy({ protocol: 6, port: 443 })])
          assert.equal(bench.judge(POD, 'from', hidden), 'drop', `${type} is not TCP`)
          settle(bench, [policy({ protocol: type })])
          assert.equal(bench.judge(POD, 'from', hidden), 'pass', `${type} may pass`)
          commit(bench.datapath, { policyRemovals: [policy({ protocol: type })] })
        }
      })
    })

    test('judge applies the mode before everything else', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        const foreign = frame({ source: '10.9.9.9', target: PEER_4 }, to443)
        const rows: readonly (readonly [Mode, Verdict, Verdict])[] = [
          ['enforce', 'drop', 'drop'],
          ['audit', 'pass', 'drop'],
          ['bypass', 'pass', 'pass'],
        ]
        for (const [mode, verdict, spoofed] of rows) {
          bench.datapath.mode.set(mode)
          assert.equal(judgeBoth(bench), verdict, mode)
          assert.equal(bench.judge(POD, 'from', foreign), spoofed, `${mode}, foreign source`)
        }
      })
    })

    test('judge passes and reports, with its rule, a packet that an audited endpoint would lose', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED, verdict: 'deny', rule: 42 })], { audit: true })
        assert.equal(bench.judge(POD, 'from', frame(out4, to443)), 'pass')
        const [event] = eventsOf(bench)
        assert.ok(event !== undefined)
        const { seen: _seen, age: _age, ...rest } = event
        assert.deepEqual(
          { ...rest, peer: [...event.peer.subarray(0, 4)] },
          {
            verdict: 'audit',
            reason: 'policy',
            endpoint: POD,
            family: 4,
            peer: [192, 0, 2, 1],
            protocol: 6,
            port: 443,
            localPort: 40000,
            opening: true,
            identity: LEARNED,
            rule: 42,
          },
        )
        assert.equal(bench.datapath.reports.counters()['verdict_audit'], 1)
      })
    })

    test('drainEvents returns when a packet was seen, also if it is read much later', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ verdict: 'deny' })])
        assert.deepEqual(eventsOf(bench), [])
        const clocks = () => ({ now: systemClock.now(), wall: systemClock.wall() })
        const before = clocks()
        bench.judge(POD, 'from', frame(out4, to443))
        const after = clocks()
        block(100)
        const reading = systemClock.wall()
        const [event] = eventsOf(bench)
        const read = systemClock.wall()
        assert.ok(event !== undefined)
        // The age refers to some moment of the reading.
        const earliest = { now: event.seen, wall: reading - event.age }
        const latest = { now: event.seen, wall: read - event.age }
        for (const clock of ['now', 'wall'] as const) {
          const times = `${clock}: ${before[clock]} ${earliest[clock]} ${latest[clock]} ${after[clock]}`
          assert.ok(latest[clock] > before[clock] - CLOCKS_APART_MS, times)
          assert.ok(earliest[clock] < after[clock] + CLOCKS_APART_MS, times)
        }
      })
    })

    test('judge never drops by policy a packet of an endpoint without enforcement, and reports nothing', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ verdict: 'deny' })], { enforcing: false })
        assert.equal(judgeBoth(bench), 'pass')
        assert.deepEqual(eventsOf(bench), [])
        assert.equal(bench.datapath.reports.counters()['verdict_not_enforcing'], 2)
      })
    })

    test('judge drops and reports a foreign source, under any policy, with audit, and without enforcement', () => {
      withBench(maker, {}, (bench) => {
        for (const more of [{}, { audit: true }, { enforcing: false }]) {
          settle(bench, [policy({})], more)
          const rows = [
            { source: '10.0.1.6', target: PEER_4 },
            { source: '0.0.0.0', target: '255.255.255.255' },
            { source: 'fd00::6', target: PEER_6 },
            { source: 'fe80::5', target: PEER_6 },
          ]
          for (const route of rows) {
            assert.equal(bench.judge(POD, 'from', frame(route, to443)), 'drop', route.source)
          }
          assert.deepEqual(
            eventsOf(bench).map((event) => event.reason),
            ['source', 'source', 'source', 'source'],
          )
        }
        assert.equal(bench.datapath.reports.counters()['drop_source'], 12)
      })
    })

    test('judge accepts every address of a source prefix', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({})], { sources: [prefix('10.0.1.0/24')] })
        const from = (source: string): Verdict =>
          bench.judge(POD, 'from', frame({ source, target: PEER_4 }, to443))
        assert.deepEqual(
          [from('10.0.1.0'), from('10.0.1.255'), from('10.0.2.0')],
          ['pass', 'pass', 'drop'],
        )
      })
    })
  })
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

export function eventsOf(bench: Bench): readonly DatapathEvent[] {
  const events: DatapathEvent[] = []
  bench.datapath.reports.drain(1000, (event) => events.push(event))
  return events
}
