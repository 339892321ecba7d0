// Which connections count as open in the kernel's maps, and for how long: floods of short flows, idle times, the bound of an endpoint. The
// programs judge the packets.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { generation } from '../../../src/core/ids.ts'
import { pinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import { KernelMap } from '../../../src/datapath/ebpf/maps/kernel-map.ts'
import { encodeLong, readLong } from '../../../src/datapath/ebpf/maps/layout.ts'
import { commit, LEARNED, PEER_4, POD, POD_4, policy, settle } from '../../contract/bench.ts'
import { makeMemoryBench } from '../../contract/memory-bench.ts'
import {
  ebpfMaker,
  makeEbpfBench,
  withEbpfBench,
  type EbpfBench,
} from '../../contract/ebpf-bench.ts'
import { peersOf, Wire } from '../../contract/wire.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { ACK, FIN, frame, RST, SYN, tcp, udp } from '../../support/packets.ts'

const open = [policy({ identity: LEARNED })]
/** Offset of the time at which a connection was last seen. */
const SEEN_AT = 0
/** With this, no UDP flow counts as open. */
const QUIET = { udpIdleMs: 0 }

/** Makes every unsettled connection `seconds` older, as if no packet had passed since. */
function age(bench: EbpfBench, seconds: number): void {
  const name = 'ng_conn_new'
  const fd = bench.bpf.openPin(join(pinDirectory(bench.pinPath), name))
  assert.ok(fd >= 0, `${name} is pinned`)
  const map = new KernelMap(bench.bpf, name, fd)
  const aged: (readonly [key: Uint8Array, value: Uint8Array])[] = []
  map.forEach((keys, key, values, value) => {
    const older = values.slice(value, value + map.valueSize)
    older.set(encodeLong(readLong(older, SEEN_AT) - seconds * 1e9), SEEN_AT)
    aged.push([keys.slice(key, key + map.keySize), older])
  })
  for (const [key, value] of aged) assert.equal(map.set(key, value), 0)
  bench.bpf.close(fd)
}

interface Idle {
  readonly what: string
  readonly begin: (wire: Wire) => void
  /** The answer of the endpoint. No rule allows it. */
  readonly reply: (wire: Wire) => 'pass' | 'drop'
  readonly limit: number
}

const outAck = (wire: Wire): 'pass' | 'drop' => wire.out(ACK)
const IDLE_ROWS: readonly Idle[] = [
  {
    what: 'UDP of the peer',
    begin: (wire) => wire.inUdp(),
    reply: (wire) => wire.outUdp(),
    limit: 180,
  },
  {
    what: 'TCP that only the peer has begun',
    begin: (wire) => wire.in(SYN),
    reply: (wire) => wire.out(SYN | ACK),
    limit: 180,
  },
  {
    what: 'TCP that both have ended',
    begin: (wire) => {
      wire.accept()
      wire.in(FIN | ACK)
      wire.out(FIN | ACK)
    },
    reply: outAck,
    limit: 60,
  },
  {
    what: 'TCP that was reset',
    begin: (wire) => {
      wire.accept()
      wire.in(RST)
    },
    reply: outAck,
    limit: 60,
  },
]

describe('ebpf connections', { skip: ebpfMaker.unavailable ?? false }, () => {
  test('countless short flows evict no idle connection of either side', () =>
    withEbpfBench((bench) => {
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

  for (const { what, begin, reply, limit } of IDLE_ROWS) {
    test(`judge passes replies in ${what} during ${limit} s of silence, and drops them later`, () => {
      for (const [seconds, verdict] of [
        [limit - 5, 'pass'],
        [limit + 1, 'drop'],
      ] as const) {
        withEbpfBench((bench) => {
          settle(bench, [])
          const clock = new FakeClock()
          const model = makeMemoryBench({}, clock)
          settle(model, [])
          const wires = [new Wire(bench), new Wire(model)] as const
          for (const wire of wires) begin(wire)
          age(bench, seconds)
          clock.advance(seconds * 1000)
          assert.deepEqual(wires.map(reply), [verdict, verdict], `after ${seconds} s`)
        })
      }
    })
  }

  test('judge lets the peer begin a flow again that the endpoint began, after 180 s of silence', () => {
    for (const [seconds, verdict] of [
      [175, 'drop'],
      [181, 'pass'],
    ] as const) {
      withEbpfBench((bench) => {
        settle(bench, open)
        const wire = new Wire(bench)
        assert.equal(wire.outUdp(), 'pass')
        settle(bench, [], { generation: generation(2) })
        commit(bench.datapath, { policyRemovals: open })
        age(bench, seconds)
        wire.inUdp()
        assert.equal(wire.outUdp(), verdict, `after ${seconds} s`)
      })
    }
  })

  test('peers.scan removes connections that were idle for longer than tcp-idle, which makes room for others', () => {
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

  test('peers.scan leaves out UDP flows that were silent for longer than udp-idle', () => {
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

  test('peers.scan reports a connection over the bound when there is room', () =>
    withEbpfBench(
      (bench) => {
        settle(bench, open)
        const [first, second, third] = [40000, 40001, 40002].map((port) => new Wire(bench, port))
        first?.connect()
        second?.connect()
        third?.connect()
        first?.out(RST)
        assert.equal(peersOf(bench).length, 1)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100)
        third?.out(ACK)
        assert.equal(peersOf(bench).length, 2)
      },
      { connectionsPerEndpoint: 2 },
    ))
})
