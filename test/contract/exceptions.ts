// Contract: packets that pass without policy, and the special cases for processes of the host itself.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointId } from '../../src/core/ids.ts'
import {
  ACK,
  arp,
  destinationOptions,
  ethernet,
  frame,
  hopByHop,
  sctp,
  SYN,
  tcp,
  udp,
  type Route,
  type Segment,
} from '../support/packets.ts'
import {
  batch,
  commit,
  endpoint,
  listener,
  PEER_4,
  POD,
  POD_4,
  POD_6,
  policy,
  prefix,
  settle,
  skipOf,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'

type Verdict = 'pass' | 'drop'

const to443 = tcp({ from: 40000, to: 443 }, SYN)

export function contractOfExceptions(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  describe(`${maker.name}: exceptions`, { skip }, () => {
    test('judge lets DNS to own listeners pass without a rule, and nothing else', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        commit(bench.datapath, { prefixUpserts: batch([['10.0.1.1/32', 1, 1]]) })
        bench.datapath.exceptions.setListeners([
          listener('10.0.9.9', 5300),
          listener('0.0.0.0', 53),
        ])
        const rows: readonly (readonly [
          Verdict,
          string,
          number,
          'tcp' | 'udp' | 'sctp',
          string,
        ])[] = [
          ['pass', '10.0.9.9', 5300, 'udp', 'the listener'],
          ['pass', '10.0.9.9', 5300, 'tcp', 'the listener by TCP'],
          ['drop', '10.0.9.9', 5300, 'sctp', 'no listener uses SCTP'],
          ['drop', '10.0.9.9', 5301, 'udp', 'another port'],
          ['drop', '10.0.9.8', 5300, 'udp', 'another address'],
          ['pass', '10.0.1.1', 53, 'udp', 'any address of the node'],
          ['drop', PEER_4, 53, 'udp', 'another resolver is not namegate’s'],
        ]
        for (const [verdict, target, port, protocol, reason] of rows) {
          const ports = { from: 40000, to: port }
          const segment = { tcp: tcp(ports, SYN), udp: udp(ports), sctp: sctp(ports) }[protocol]
          assert.equal(
            bench.judge(POD, 'from', frame({ source: POD_4, target }, segment)),
            verdict,
            reason,
          )
        }
        bench.datapath.exceptions.setListeners([listener('10.0.9.9', 5301)])
        const old = frame({ source: POD_4, target: '10.0.9.9' }, udp({ from: 40000, to: 5300 }))
        assert.equal(bench.judge(POD, 'from', old), 'drop', 'a removed listener')
      })
    })

    test('judge lets DNS to own listeners pass only if every reader of packets finds its port', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        commit(bench.datapath, { prefixUpserts: batch([['10.0.1.1/32', 1, 1]]) })
        const own = ['10.0.9.9', 'fd00::99'].map((each) => listener(each, 5300))
        bench.datapath.exceptions.setListeners([...own, listener('0.0.0.0', 5300)])
        const query = udp({ from: 40000, to: 5300 })
        const options = Uint8Array.of(1, 1, 1, 1)
        const rows: readonly (readonly [Route, string])[] = [
          [{ source: POD_4, target: '10.0.9.9', options }, 'options'],
          [{ source: POD_4, target: '10.0.1.1', options }, 'options, to any address'],
          [{ source: POD_6, target: 'fd00::99', extensions: [hopByHop] }, 'hop-by-hop options'],
          [{ source: POD_6, target: 'fd00::99', extensions: [destinationOptions] }, 'others'],
        ]
        for (const [route, reason] of rows) {
          const plain = { source: route.source, target: route.target }
          assert.equal(bench.judge(POD, 'from', frame(plain, query)), 'pass', reason)
          assert.equal(bench.judge(POD, 'from', frame(route, query)), 'drop', reason)
        }
      })
    })

    test('judge lets ARP pass, and drops no incoming packet', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [])
        assert.equal(bench.judge(POD, 'from', arp()), 'pass')
        const inbound = frame({ source: PEER_4, target: POD_4 }, tcp({ from: 1, to: 2 }, ACK))
        assert.equal(bench.judge(POD, 'to', inbound), 'pass')
        assert.equal(
          bench.judge(POD, 'to', ethernet(0x8847, new Uint8Array(20))),
          'pass',
          'also a malformed packet',
        )
      })
    })

    test('judge cuts flows to another endpoint of the node after their allow is removed, although that endpoint may answer', () => {
      withBench(maker, {}, (bench) => {
        const [other, target] = [endpointId(6), '10.0.1.6']
        settle(bench, [])
        commit(bench.datapath, {
          policyUpserts: [policy({})],
          endpointUpserts: [
            endpoint({ id: other, hook: bench.interfaceHook(2), sources: [prefix(target)] }),
          ],
        })
        const flows = [
          [udp({ from: 40000, to: 443 }), udp({ from: 443, to: 40000 })],
          [tcp({ from: 40000, to: 443 }, ACK), tcp({ from: 443, to: 40000 }, ACK)],
        ] as const
        const reach = (segment: Segment): 'pass' | 'drop' => {
          const octets = frame({ source: POD_4, target }, segment)
          const verdict = bench.judge(POD, 'from', octets)
          if (verdict === 'pass') bench.judge(other, 'to', octets)
          return verdict
        }
        assert.equal(reach(tcp({ from: 40000, to: 443 }, SYN)), 'pass')
        for (const [asks] of flows) assert.equal(reach(asks), 'pass')
        commit(bench.datapath, { policyRemovals: [policy({})] })
        for (const [asks, answers] of flows) {
          assert.equal(reach(asks), 'drop')
          const back = frame({ source: target, target: POD_4 }, answers)
          assert.equal(bench.judge(other, 'from', back), 'pass', 'a reply')
        }
      })
    })

    test(
      'judge of a cgroup endpoint checks no source, and takes loopback as the host',
      { skip: skipOf(maker, 'cgroups') },
      () => {
        withBench(maker, {}, (bench) => {
          const entries = [policy({ identity: 1, protocol: 6, port: 443 })]
          commit(bench.datapath, {
            policyUpserts: entries,
            endpointUpserts: [endpoint({ hook: bench.cgroupHook(), sources: [] })],
          })
          const rows: readonly (readonly [Verdict, string, string, string])[] = [
            ['pass', '127.0.0.1', '127.0.0.1', 'loopback'],
            ['pass', '127.0.0.1', '127.9.9.9', 'all of 127.0.0.0/8'],
            ['pass', '::1', '::1', 'IPv6 loopback'],
            ['drop', '10.0.0.1', PEER_4, 'the world'],
          ]
          for (const [verdict, source, target, reason] of rows) {
            assert.equal(
              bench.judge(POD, 'from', frame({ source, target }, to443)),
              verdict,
              reason,
            )
          }
        })
      },
    )

    test(
      'sourceOf returns the cgroup endpoint that asked one of namegate’s listeners, also in mode bypass',
      { skip: skipOf(maker, 'cgroups') },
      () => {
        withBench(maker, {}, (bench) => {
          bench.datapath.exceptions.setListeners([listener('127.0.0.1', 5300)])
          commit(bench.datapath, {
            endpointUpserts: [endpoint({ hook: bench.cgroupHook(), sources: [] })],
          })
          const ask = (from: number): Verdict =>
            bench.judge(
              POD,
              'from',
              frame({ source: '127.0.0.1', target: '127.0.0.1' }, udp({ from, to: 5300 })),
            )
          const { octets } = listener('127.0.0.1', 0)
          const route = { source: '127.0.0.1', target: '127.0.0.1', options: new Uint8Array(4) }
          const adorned = frame(route, udp({ from: 41000, to: 5300 }))
          assert.equal(bench.judge(POD, 'from', adorned), 'drop', 'not every reader finds the port')
          assert.equal(ask(41000), 'pass')
          assert.equal(bench.datapath.peers.sourceOf(17, 4, octets, 41000), POD)
          assert.equal(bench.datapath.peers.sourceOf(6, 4, octets, 41000), undefined)
          assert.equal(bench.datapath.peers.sourceOf(17, 4, octets, 41001), undefined)
          bench.datapath.mode.set('bypass')
          assert.equal(ask(41001), 'pass')
          assert.equal(bench.datapath.peers.sourceOf(17, 4, octets, 41001), POD)
        })
      },
    )
  })
}
