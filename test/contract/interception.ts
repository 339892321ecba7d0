// Contract: DNS that passes because rules after the datapath redirect it, and packets that must not pass with it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Mode } from '../../src/datapath/entries.ts'
import type { InterceptedInterface } from '../../src/datapath/abilities.ts'
import {
  ACK,
  destinationOptions,
  frame,
  RST,
  sctp,
  SYN,
  tcp,
  udp,
  type Segment,
} from '../support/packets.ts'
import {
  LEARNED,
  listener,
  PEER_4,
  PEER_6,
  POD,
  POD_4,
  POD_6,
  policy,
  settle,
  skipOf,
  type Ability,
  type Bench,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'

type Verdict = 'pass' | 'drop'

const BOTH = { 4: true, 6: true } as const
const ROUTE_4 = { source: POD_4, target: PEER_4 }
const ROUTE_6 = { source: POD_6, target: PEER_6 }
const QUERY = { from: 40000, to: 53 }
const ANSWER = { from: 53, to: 40000 }
/** The destination of frames of the test support, and another address. */
const FRAME_MAC = frame(ROUTE_4, udp(QUERY)).slice(0, 6)
const OTHER_MAC = Uint8Array.of(2, 0, 0, 0, 0, 0x99)

/** Queries that the rules after the datapath possibly do not redirect: they do not read them as DNS, or the address is a group. */
function unsure(segment: Segment): readonly (readonly [Uint8Array, string, Ability?])[] {
  const behind = (type: number, octets: number): Uint8Array =>
    frame({ ...ROUTE_6, extensions: [{ type, body: new Uint8Array(octets) }] }, segment)
  const options = (...octets: number[]): Uint8Array =>
    frame({ ...ROUTE_4, options: Uint8Array.from(octets) }, segment)
  const inside = { type: 51, body: Uint8Array.of(2, ...new Uint8Array(13)) }
  return [
    [behind(51, 10), 'after an authentication header'],
    [behind(135, 6), 'after a mobility header'],
    [behind(139, 6), 'after a HIP header'],
    [behind(140, 6), 'after a shim6 header'],
    [behind(253, 6), 'after a header for experiments'],
    [behind(0, 6), 'after hop-by-hop options'],
    [behind(60, 6), 'after destination options'],
    [behind(43, 6), 'after a route at its end'],
    [frame({ ...ROUTE_6, extensions: [destinationOptions, inside] }, segment), 'after two of them'],
    [options(0x94, 4, 0, 0), 'with a router alert'],
    [options(1, 1, 1, 1), 'with padding'],
    [frame({ ...ROUTE_6, fragment: 0 }, segment), 'after a fragment header', 'fragments'],
    [frame({ ...ROUTE_4, moreFragments: true }, segment), 'a first fragment', 'fragments'],
    [frame({ ...ROUTE_6, moreFragments: true }, segment), 'a first fragment', 'fragments'],
    [frame({ ...ROUTE_4, target: '239.1.2.3' }, segment), 'to a group'],
    [frame({ ...ROUTE_4, target: '255.255.255.255' }, segment), 'to everyone'],
    [frame({ ...ROUTE_6, target: 'ff0e::99' }, segment), 'to a group'],
  ]
}

export function contractOfInterception(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  const withPod = (run: (bench: Bench) => void): void =>
    withBench(maker, {}, (bench) => {
      settle(bench, [])
      run(bench)
    })

  describe(`${maker.name}: interception`, { skip }, () => {
    test('setIntercepted lets port 53 pass only in the listed families and on the listed interfaces', () => {
      withPod((bench) => {
        const here = bench.ifindex(1)
        const [query4, query6] = [frame(ROUTE_4, udp(QUERY)), frame(ROUTE_6, udp(QUERY))]
        type Row = readonly [readonly InterceptedInterface[], Verdict, Verdict, string]
        const rows: readonly Row[] = [
          [[], 'drop', 'drop', 'not intercepted: policy judges the port'],
          [[{ ifindex: here, families: BOTH }], 'pass', 'pass', 'both families'],
          [[{ ifindex: here, families: { 4: true, 6: false } }], 'pass', 'drop', 'IPv4 only'],
          [[{ ifindex: here, families: { 4: false, 6: true } }], 'drop', 'pass', 'IPv6 only'],
          [[{ ifindex: bench.ifindex(2), families: BOTH }], 'drop', 'drop', 'another interface'],
          [[], 'drop', 'drop', 'no longer'],
        ]
        for (const [entries, four, six, reason] of rows) {
          bench.datapath.exceptions.setIntercepted(entries)
          assert.deepEqual(bench.datapath.exceptions.intercepted(), entries, reason)
          assert.equal(bench.judge(POD, 'from', query4), four, `IPv4: ${reason}`)
          assert.equal(bench.judge(POD, 'from', query6), six, `IPv6: ${reason}`)
        }
        assert.equal(bench.datapath.reports.counters()['verdict_intercepted'], 4)
      })
    })

    test('judge takes only UDP and TCP to port 53 from own sources as DNS', () => {
      withPod((bench) => {
        bench.datapath.exceptions.setIntercepted([{ ifindex: bench.ifindex(1), families: BOTH }])
        const rows: readonly (readonly [Verdict, Uint8Array, string])[] = [
          ['pass', frame(ROUTE_4, udp(QUERY)), 'UDP'],
          ['pass', frame(ROUTE_4, tcp(QUERY, SYN)), 'TCP'],
          ['pass', frame(ROUTE_4, tcp(QUERY, RST)), 'any TCP segment'],
          ['drop', frame({ ...ROUTE_4, fragment: 3 }, udp(QUERY)), 'a later fragment has no port'],
          ['drop', frame(ROUTE_4, sctp(QUERY)), 'SCTP'],
          ['drop', frame(ROUTE_4, udp({ from: 53, to: 54 })), 'from port 53'],
          ['drop', frame(ROUTE_4, udp({ from: 40000, to: 853 })), 'DNS over TLS or QUIC'],
          ['drop', frame({ ...ROUTE_4, source: '10.0.1.6' }, udp(QUERY)), 'a forged source'],
          [
            'drop',
            frame({ ...ROUTE_4, vlans: ['vlan'] }, udp(QUERY)),
            'a tagged frame, which belongs to another interface',
          ],
        ]
        for (const [verdict, octets, reason] of rows) {
          if (reason.includes('fragment') && maker.lacks?.fragments !== undefined) continue
          assert.equal(bench.judge(POD, 'from', octets), verdict, reason)
        }
      })
    })

    test('judge takes a packet as DNS only if every reader of packets does, and only to one address', () => {
      withPod((bench) => {
        bench.datapath.exceptions.setIntercepted([{ ifindex: bench.ifindex(1), families: BOTH }])
        for (const segment of [udp(QUERY), tcp(QUERY, SYN)]) {
          for (const [octets, reason, ability] of unsure(segment)) {
            if (ability !== undefined && maker.lacks?.[ability] !== undefined) continue
            assert.equal(bench.judge(POD, 'from', octets), 'drop', reason)
          }
          for (const route of [ROUTE_4, ROUTE_6]) {
            assert.equal(bench.judge(POD, 'from', frame(route, segment)), 'pass')
          }
        }
      })
    })

    test('judge lets only frames for the bridge itself pass from a bridge port', () => {
      withPod((bench) => {
        const ifindex = bench.ifindex(1)
        const query = (route = ROUTE_4): Verdict =>
          bench.judge(POD, 'from', frame(route, udp(QUERY)))
        bench.datapath.exceptions.setIntercepted([
          { ifindex, families: BOTH, bridgeMac: OTHER_MAC },
        ])
        assert.deepEqual(
          [query(), query(ROUTE_6)],
          ['drop', 'drop'],
          'for another host on the bridge',
        )
        for (let n = 0; n < 6; n++) {
          const bridgeMac = FRAME_MAC.map((octet, i) => (i === n ? octet ^ 4 : octet))
          bench.datapath.exceptions.setIntercepted([{ ifindex, families: BOTH, bridgeMac }])
          assert.equal(query(), 'drop', `another address, different only in octet ${n}`)
        }
        const entries = [{ ifindex, families: BOTH, bridgeMac: FRAME_MAC }]
        bench.datapath.exceptions.setIntercepted(entries)
        assert.deepEqual(bench.datapath.exceptions.intercepted(), entries)
        assert.deepEqual([query(), query(ROUTE_6)], ['pass', 'pass'], 'for the bridge')
      })
    })

    test(
      'judge lets DNS to own listeners pass from a bridge port only in frames for the bridge itself',
      { skip: skipOf(maker, 'bridges') },
      () => {
        withPod((bench) => {
          bench.datapath.exceptions.setListeners([listener(PEER_4, 5300)])
          const ifindex = bench.ifindex(1)
          const query = frame(ROUTE_4, udp({ from: 40000, to: 5300 }))
          const rows: readonly (readonly [Verdict, Uint8Array, string])[] = [
            ['drop', OTHER_MAC, 'for another host on the bridge'],
            ['pass', FRAME_MAC, 'for the bridge'],
          ]
          for (const [verdict, bridgeMac, reason] of rows) {
            bench.datapath.exceptions.setIntercepted([{ ifindex, families: BOTH, bridgeMac }])
            assert.equal(bench.judge(POD, 'from', query), verdict, reason)
          }
        })
      },
    )

    test('judge applies the source check and the mode to intercepted packets', () => {
      withPod((bench) => {
        settle(bench, [policy({ identity: LEARNED, verdict: 'deny' })])
        bench.datapath.exceptions.setIntercepted([{ ifindex: bench.ifindex(1), families: BOTH }])
        const forged = frame({ ...ROUTE_4, source: '10.0.1.6' }, udp(QUERY))
        const rows: readonly (readonly [Mode, Verdict])[] = [
          ['enforce', 'drop'],
          ['audit', 'drop'],
          ['bypass', 'pass'],
        ]
        for (const [mode, verdict] of rows) {
          bench.datapath.mode.set(mode)
          assert.equal(bench.judge(POD, 'from', frame(ROUTE_4, udp(QUERY))), 'pass', mode)
          assert.equal(bench.judge(POD, 'from', forged), verdict, `${mode}, forged source`)
        }
      })
    })

    test('judge begins no connection with intercepted queries and their answers, also after interception ends', () => {
      const kinds: readonly (readonly [string, Segment, Segment])[] = [
        ['UDP', udp(QUERY), udp(ANSWER)],
        ['TCP', tcp(QUERY, ACK), tcp(ANSWER, SYN)],
      ]
      for (const [kind, query, answer] of kinds) {
        withPod((bench) => {
          const back = { source: PEER_4, target: POD_4 }
          const send = (): Verdict => bench.judge(POD, 'from', frame(ROUTE_4, query))
          const receive = (): Verdict => bench.judge(POD, 'to', frame(back, answer))
          bench.datapath.exceptions.setIntercepted([{ ifindex: bench.ifindex(1), families: BOTH }])
          assert.equal(send(), 'pass')
          receive()
          bench.datapath.exceptions.setIntercepted([])
          assert.equal(send(), 'drop', `${kind}: the answer began no connection`)
          receive()
          assert.equal(send(), 'drop', `${kind}: a late answer began none either`)
        })
      }
    })

    test('judge lets a peer begin a connection from port 53 on an interface without interception', () => {
      withPod((bench) => {
        bench.datapath.exceptions.setIntercepted([{ ifindex: bench.ifindex(2), families: BOTH }])
        bench.judge(POD, 'to', frame({ source: PEER_4, target: POD_4 }, udp(ANSWER)))
        assert.equal(bench.judge(POD, 'from', frame(ROUTE_4, udp(QUERY))), 'pass')
      })
    })

    test('setIntercepted outlives a restart', () => {
      withPod((bench) => {
        const entries = [{ ifindex: bench.ifindex(1), families: BOTH }]
        bench.datapath.exceptions.setIntercepted(entries)
        bench.restart()
        assert.deepEqual(bench.datapath.exceptions.intercepted(), entries)
      })
    })
  })
}
