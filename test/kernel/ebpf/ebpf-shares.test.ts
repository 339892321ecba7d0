// The share of the connection tables that each endpoint has (src/datapath/ebpf/programs/share.h). Other endpoints cannot use it. The
// programs judge the packets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointId } from '../../../src/core/ids.ts'
import {
  batch,
  commit,
  endpoint,
  LEARNED,
  PEER_4,
  policy,
  prefix,
  WORLD_4,
} from '../../contract/bench.ts'
import { ebpfMaker, withEbpfBench, type EbpfBench } from '../../contract/ebpf-bench.ts'
import { peersOf } from '../../contract/wire.ts'
import { ACK, frame, RST, SYN, tcp, udp, type Segment } from '../../support/packets.ts'

/** With this, no UDP flow counts as open. */
const QUIET = { udpIdleMs: 0 }

/** Upserts endpoint `n` on its own interface, with address 10.0.n.5. */
function settleMany(bench: EbpfBench, count: number): void {
  for (let n = 1; n <= count; n++) {
    const id = endpointId(n)
    const failures = commit(bench.datapath, {
      policyUpserts: [policy({ endpoint: id, identity: LEARNED })],
      prefixUpserts: batch([[`${PEER_4}/32`, LEARNED, WORLD_4]]),
      endpointUpserts: [
        endpoint({ id, hook: bench.interfaceHook(n), sources: [prefix(`10.0.${n}.5/32`)] }),
      ],
    })
    assert.deepEqual(failures, [])
  }
}

function sends(bench: EbpfBench, n: number, segment: Segment): 'pass' | 'drop' {
  return bench.judge(
    endpointId(n),
    'from',
    frame({ source: `10.0.${n}.5`, target: PEER_4 }, segment),
  )
}

function receives(bench: EbpfBench, n: number, segment: Segment): void {
  const target = `10.0.${n}.5`
  bench.judge(endpointId(n), 'to', frame({ source: PEER_4, target }, segment))
}

function connects(bench: EbpfBench, n: number, port: number): void {
  sends(bench, n, tcp({ from: port, to: 443 }, SYN))
  receives(bench, n, tcp({ from: 443, to: port }, SYN | ACK))
  sends(bench, n, tcp({ from: port, to: 443 }, ACK))
}

describe('ebpf shares of connections', { skip: ebpfMaker.unavailable ?? false }, () => {
  test('four endpoints at their bound leave the fifth its share', () =>
    withEbpfBench(
      (bench) => {
        settleMany(bench, 5)
        for (let n = 1; n <= 4; n++) {
          for (let port = 1; port <= 1100; port++) connects(bench, n, port)
        }
        const before = bench.datapath.reports.counters()
        for (let port = 1; port <= 100; port++) connects(bench, 5, port)
        const after = bench.datapath.reports.counters()
        for (const name of ['connections_over_limit', 'connections_table_full']) {
          assert.equal(after[name], before[name], name)
        }
        const peers = peersOf(bench).filter((text) => text.startsWith('5 '))
        assert.equal(peers.length, 100)
        for (let n = 1; n <= 4; n++) {
          assert.equal(sends(bench, n, tcp({ from: 1, to: 443 }, ACK)), 'pass')
          assert.equal(sends(bench, n, tcp({ from: 1100, to: 443 }, ACK)), 'pass', 'over its share')
        }
      },
      { connections: 4096, connectionsPerEndpoint: 1024, ...QUIET },
    ))

  test('countless flows of one endpoint evict its own oldest flows, and none of another endpoint', () =>
    withEbpfBench(
      (bench) => {
        settleMany(bench, 2)
        const asked = udp({ from: 443, to: 7000 })
        const answer = udp({ from: 7000, to: 443 })
        for (const n of [1, 2]) receives(bench, n, asked)
        commit(bench.datapath, {
          policyRemovals: [policy({ endpoint: endpointId(2), identity: LEARNED })],
        })
        for (let port = 10_000; port < 20_000; port++) {
          sends(bench, 1, udp({ from: port, to: 443 }))
        }
        receives(bench, 1, udp({ from: 443, to: 7001 }))
        commit(bench.datapath, {
          policyRemovals: [policy({ endpoint: endpointId(1), identity: LEARNED })],
        })
        assert.equal(sends(bench, 2, answer), 'pass', 'the flow of the other endpoint stays')
        assert.equal(sends(bench, 1, answer), 'drop', 'its own oldest flow is evicted')
        assert.equal(sends(bench, 1, udp({ from: 7001, to: 443 })), 'pass', 'its newest flow stays')
        const { all, most } = bench.datapath.peers.use()
        assert.ok(all <= 2048 + 2 && most <= 1024, `${all} ${most}`)
        assert.ok((bench.datapath.reports.counters()['flows_over_share'] ?? 0) > 18_000)
      },
      { connections: 4096 },
    ))

  test('connections that ended free their room', () =>
    withEbpfBench(
      (bench) => {
        settleMany(bench, 1)
        for (let round = 0; round < 20_000; round++) {
          const port = 1024 + (round % 40_000)
          connects(bench, 1, port)
          sends(bench, 1, tcp({ from: port, to: 443 }, RST))
        }
        receives(bench, 1, udp({ from: 443, to: 7000 }))
        commit(bench.datapath, {
          policyRemovals: [policy({ endpoint: endpointId(1), identity: LEARNED })],
        })
        assert.equal(sends(bench, 1, udp({ from: 7000, to: 443 })), 'pass')
        assert.ok(bench.datapath.peers.use().most <= 1024)
        commit(bench.datapath, { endpointRemovals: [endpointId(1)] })
        assert.deepEqual(peersOf(bench), [])
        assert.deepEqual(bench.datapath.peers.use(), { all: 0, most: 0 })
      },
      { connections: 4096 },
    ))
})
