// Contract: connections that are older than the enforcement of their endpoint, and packets that only look like parts of one.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointId, generation } from '../../src/core/ids.ts'
import { formatAddress } from '../../src/core/ip.ts'
import type { Adoption, FlowTuple } from '../../src/datapath/adoption.ts'
import type { Mode } from '../../src/datapath/entries.ts'
import { ACK, address, FIN, frame, PSH, RST, SYN, tcp, udp } from '../support/packets.ts'
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
  settle,
  WORLD_4,
  type Bench,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'
import { Wire } from './wire.ts'

type Verdict = 'pass' | 'drop'

const LONG = 60_000

/** The flow of a `Wire`. */
function flow(more: Partial<FlowTuple> = {}): FlowTuple {
  const [local, peer] = [address(POD_4), address(PEER_4)]
  return { family: 4, protocol: 6, local, localPort: 40000, peer, peerPort: 443, ...more }
}

function adoption(more: Partial<Adoption> = {}): Adoption {
  const pod = { endpoint: POD, generation: generation(1) }
  return { ...pod, passMs: LONG, learnMs: 0, flows: [flow()], ...more }
}

/** Waits in real time, because the test cannot set the kernel's clock. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

export function contractOfAdoption(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  const withWire = (run: (wire: Wire, bench: Bench) => void, policies = [] as const): void =>
    withBench(maker, {}, (bench) => {
      settle(bench, policies)
      run(new Wire(bench), bench)
    })

  describe(`${maker.name}: adoption`, { skip }, () => {
    test('adopt lets the listed flows pass, only with their tuple', () => {
      withWire((wire, bench) => {
        assert.equal(wire.out(ACK), 'drop')
        assert.equal(bench.datapath.adoption.adopt(adoption()), 1)
        for (const flags of [ACK, ACK | PSH, FIN | ACK, RST]) {
          assert.equal(wire.out(flags), 'pass', `flags ${flags}`)
        }
        assert.equal(new Wire(bench, 40001).out(ACK), 'drop', 'another local port')
        assert.equal(new Wire(bench, 40000, 80).out(ACK), 'drop', 'another peer port')
        assert.equal(wire.outUdp(), 'drop', 'another protocol')
        assert.equal(bench.datapath.reports.counters()['verdict_adopted'], 4)
      })
    })

    test('adopt also takes UDP and IPv6', () => {
      withWire((wire, bench) => {
        const flows = [
          flow({ protocol: 17 }),
          flow({ family: 6, local: address(POD_6), peer: address(PEER_6) }),
        ]
        assert.equal(bench.datapath.adoption.adopt(adoption({ flows })), 2)
        assert.equal(wire.outUdp(), 'pass')
        const segment = tcp({ from: 40000, to: 443 }, ACK)
        const octets = frame({ source: POD_6, target: PEER_6 }, segment)
        assert.equal(bench.judge(POD, 'from', octets), 'pass')
        assert.equal(wire.out(ACK), 'drop', 'IPv4 TCP was not listed')
      })
    })

    test('adopt never lets a SYN pass', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption({ learnMs: LONG }))
        for (const flags of [SYN, SYN | ACK, SYN | FIN, SYN | RST]) {
          assert.equal(wire.out(flags), 'drop', `flags ${flags}, listed`)
          assert.equal(new Wire(bench, 41000).out(flags), 'drop', `flags ${flags}, not listed`)
          assert.equal(new Wire(bench, 41000).out(ACK | flags), 'drop', `flags ${flags} with ACK`)
        }
        assert.equal(bench.datapath.adoption.list().length, 1, 'a SYN teaches nothing')
      })
    })

    test('adopt learns TCP flows from segments without SYN, only during the time for learning', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption({ flows: [], learnMs: LONG }))
        assert.equal(wire.outUdp(), 'drop', 'UDP is never learned')
        const fragment = frame(
          { source: POD_4, target: PEER_4, fragment: 3 },
          udp({ from: 1, to: 2 }),
        )
        assert.equal(bench.judge(POD, 'from', fragment), 'drop', 'a fragment has no tuple')
        assert.equal(wire.out(ACK), 'pass')
        assert.deepEqual(tuplesOf(bench), [`${POD} 6 ${POD_4} 40000 ${PEER_4} 443`])
        bench.datapath.adoption.adopt(adoption({ flows: [], learnMs: 1 }))
        pause(5)
        assert.equal(wire.out(ACK), 'pass', 'a learned flow continues')
        assert.equal(new Wire(bench, 40001).out(ACK), 'drop', 'the time for learning is over')
      })
    })

    test('adopt ends after its time, for listed and learned flows', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption({ passMs: 1, learnMs: LONG }))
        pause(5)
        assert.equal(wire.out(ACK), 'drop', 'listed')
        assert.equal(new Wire(bench, 40001).out(ACK), 'drop', 'learning never outlasts passing')
        assert.deepEqual(bench.datapath.adoption.list(), [])
      })
    })

    test('adopt lets no flow of another generation pass, older or newer', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption({ learnMs: LONG }))
        assert.equal(wire.out(ACK), 'pass')
        settle(bench, [], { generation: generation(2) })
        assert.equal(wire.out(ACK), 'drop', 'listed')
        assert.equal(new Wire(bench, 40001).out(ACK), 'drop', 'a flow that could be learned')
        assert.deepEqual(bench.datapath.adoption.list(), [])
        settle(bench, [], { generation: generation(1) })
        assert.equal(wire.out(ACK), 'drop', 'still forgotten')
        bench.datapath.adoption.adopt(adoption({ generation: generation(7) }))
        assert.equal(wire.out(ACK), 'drop', 'a generation that does not exist')
      })
    })

    test('adopt ends with the removal of the endpoint', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption({ learnMs: LONG }))
        commit(bench.datapath, { endpointRemovals: [POD] })
        settle(bench, [])
        assert.equal(wire.out(ACK), 'drop')
        assert.deepEqual(bench.datapath.adoption.list(), [])
      })
    })

    test('adopt before the endpoint exists lets its flows pass from the first packet on', () => {
      withBench(maker, {}, (bench) => {
        bench.datapath.adoption.adopt(adoption())
        settle(bench, [])
        assert.equal(new Wire(bench).out(ACK), 'pass')
      })
    })

    test('adopt lets a listed flow pass despite a deny, and a learned flow not', () => {
      withWire((wire, bench) => {
        const learned = new Wire(bench, 40001)
        bench.datapath.adoption.adopt(adoption({ learnMs: LONG }))
        assert.equal(learned.out(ACK), 'pass', 'no deny yet')
        commit(bench.datapath, { policyUpserts: [policy({ identity: LEARNED, verdict: 'deny' })] })
        assert.equal(wire.out(ACK), 'pass')
        assert.equal(learned.out(ACK), 'drop')
        assert.equal(new Wire(bench, 40002).out(ACK), 'drop', 'no flow is learned against a deny')
      })
    })

    test('adopt opens only sources of the endpoint, and no other endpoint', () => {
      withWire((_, bench) => {
        const forged = flow({ local: address('10.0.1.6') })
        bench.datapath.adoption.adopt(adoption({ flows: [forged], learnMs: LONG }))
        const octets = frame(
          { source: '10.0.1.6', target: PEER_4 },
          tcp({ from: 40000, to: 443 }, ACK),
        )
        assert.equal(bench.judge(POD, 'from', octets), 'drop')
        const other = endpointId(6)
        settle(bench, [], { id: other, hook: bench.interfaceHook(2) })
        const own = frame({ source: POD_4, target: PEER_4 }, tcp({ from: 40000, to: 443 }, ACK))
        assert.equal(bench.judge(other, 'from', own), 'drop')
      })
    })

    test('adopt changes no verdict of policy, audit and mode', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption({ learnMs: LONG }))
        const counted = (name: string): number => bench.datapath.reports.counters()[name] ?? 0
        commit(bench.datapath, { policyUpserts: [policy({ identity: LEARNED })] })
        assert.equal(wire.out(ACK), 'pass')
        assert.deepEqual([counted('verdict_allow'), counted('verdict_adopted')], [1, 0])
        commit(bench.datapath, { policyRemovals: [policy({ identity: LEARNED })] })
        const rows: readonly (readonly [Mode, Verdict])[] = [
          ['audit', 'pass'],
          ['enforce', 'drop'],
        ]
        for (const [mode, verdict] of rows) {
          bench.datapath.mode.set(mode)
          assert.equal(wire.out(ACK), 'pass', mode)
          assert.equal(wire.out(SYN), verdict, mode)
        }
        assert.equal(counted('verdict_adopted'), 2)
      })
    })

    test('adopt counts flows without room, and policy judges them', () => {
      withBench(maker, { adopted: 2 }, (bench) => {
        settle(bench, [])
        const flows = [1, 2, 3].map((n) => flow({ localPort: 40000 + n }))
        assert.equal(bench.datapath.adoption.adopt(adoption({ flows, learnMs: LONG })), 2)
        assert.equal(bench.datapath.reports.counters()['adopted_table_full'], 1)
        const verdicts = flows.map(({ localPort }) => new Wire(bench, localPort).out(ACK))
        assert.deepEqual(verdicts, ['pass', 'pass', 'drop'])
        if (maker.lacks?.learned !== undefined) return
        assert.equal(
          bench.datapath.reports.counters()['adopted_table_full'],
          2,
          'it could not be learned either',
        )
      })
    })

    test('list returns each adopted flow with its endpoint and its time left, also after a restart', () => {
      withWire((wire, bench) => {
        bench.datapath.adoption.adopt(adoption())
        const expected = [`${POD} 6 ${POD_4} 40000 ${PEER_4} 443`]
        assert.deepEqual(tuplesOf(bench), expected)
        const [left] = bench.datapath.adoption.list().map(({ leftMs }) => leftMs)
        assert.ok(left !== undefined && left > 0 && left <= LONG)
        bench.restart()
        settle(bench, [])
        assert.deepEqual(tuplesOf(bench), expected)
        assert.equal(wire.out(ACK), 'pass')
      })
    })

    test('adopt of an audited endpoint reports nothing for an adopted flow', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [], { audit: true })
        commit(bench.datapath, { prefixUpserts: batch([[`${PEER_4}/32`, LEARNED, WORLD_4]]) })
        bench.datapath.adoption.adopt(adoption())
        assert.equal(new Wire(bench).out(ACK), 'pass')
        let events = 0
        bench.datapath.reports.drain(10, () => events++)
        assert.equal(events, 0)
      })
    })
  })
}

function tuplesOf(bench: Bench): readonly string[] {
  return bench.datapath.adoption.list().map(({ endpoint, family, protocol, ...each }) => {
    const local = `${formatAddress(family, each.local)} ${each.localPort}`
    return `${endpoint} ${protocol} ${local} ${formatAddress(family, each.peer)} ${each.peerPort}`
  })
}
