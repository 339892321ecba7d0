// What counts as an open connection in the kernel's maps, and when it ceases to: floods of short flows, idle times, the bound of an
// endpoint. Packets are judged by the programs themselves.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  commit,
  LEARNED,
  PEER_4,
  POD,
  POD_4,
  policy,
  settle,
  type Sizes,
} from '../contract/bench.ts'
import { ebpfMaker, makeEbpfBench, type EbpfBench } from '../contract/ebpf-bench.ts'
import { peersOf, Wire } from '../contract/wire.ts'
import { ACK, frame, RST, SYN, tcp, udp } from '../support/packets.ts'

const open = [policy({ identity: LEARNED })]
/** No flow of UDP counts as open. */
const QUIET = { udpIdleMs: 0 }

function withBench(run: (bench: EbpfBench) => void, sizes: Sizes = {}): void {
  const bench = makeEbpfBench(sizes)
  try {
    run(bench)
  } finally {
    bench.close()
  }
}

describe('ebpf connections', { skip: ebpfMaker.unavailable ?? false }, () => {
  test('short flows without number cut no idle connection, of either side', () =>
    withBench((bench) => {
      settle(bench, open)
      const [mine, theirs] = [new Wire(bench), new Wire(bench, 80, 50000)]
      mine.connect()
      theirs.accept()
      // The table of short flows holds 4,096.
      for (let i = 0; i < 20_000; i++) {
        const ports = { from: 1024 + (i % 60_000), to: 53 }
        const segment = i % 2 === 0 ? udp(ports) : tcp(ports, SYN)
        bench.judge(POD, 'from', frame({ source: POD_4, target: PEER_4 }, segment))
      }
      assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`])
      commit(bench.datapath, { policyRemovals: open })
      assert.equal(theirs.out(ACK), 'pass')
      assert.equal(mine.out(ACK), 'drop')
    }, QUIET))

  test('scanPeers clears what was idle for longer than tcp-idle, and makes room for others', () => {
    const bench = makeEbpfBench({ connectionsPerEndpoint: 1, tcpIdleMs: 300 })
    try {
      settle(bench, open)
      new Wire(bench).connect()
      assert.equal(peersOf(bench).length, 1)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 350)
      assert.equal(peersOf(bench).length, 0)
      new Wire(bench, 40001).connect()
      assert.equal(peersOf(bench).length, 1)
    } finally {
      bench.close()
    }
  })

  test('scanPeers tells no flow of UDP that was silent for longer than udp-idle', () => {
    const bench = makeEbpfBench({ udpIdleMs: 300 })
    try {
      settle(bench, open)
      const wire = new Wire(bench)
      wire.outUdp()
      assert.equal(peersOf(bench).length, 1)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100)
      assert.equal(peersOf(bench).length, 0)
      wire.outUdp()
      assert.equal(peersOf(bench).length, 1)
    } finally {
      bench.close()
    }
  })

  test('scanPeers tells a connection over the bound once there is room', () =>
    withBench(
      (bench) => {
        settle(bench, open)
        const [first, second] = [new Wire(bench), new Wire(bench, 40001)]
        first.connect()
        second.connect()
        first.out(RST)
        assert.equal(peersOf(bench).length, 0)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100)
        second.out(ACK)
        assert.equal(peersOf(bench).length, 1)
      },
      { connectionsPerEndpoint: 1 },
    ))
})
