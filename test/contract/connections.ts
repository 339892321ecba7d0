// Contract: who began a connection, when it counts as open, and which packets are replies.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { generation } from '../../src/core/ids.ts'
import { ACK, FIN, icmp, RST, sctp, SYN } from '../support/packets.ts'
import {
  LEARNED,
  commit,
  listener,
  PEER_4,
  policy,
  settle,
  skipOf,
  type Bench,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'
import { peersOf, Wire } from './wire.ts'

export function contractOfConnections(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  const open = [policy({ identity: LEARNED })]
  const withWire = (policies: typeof open, run: (wire: Wire, bench: Bench) => void): void =>
    withBench(maker, {}, (bench) => {
      settle(bench, policies)
      run(new Wire(bench), bench)
    })

  describe(`${maker.name}: connections`, { skip }, () => {
    test('judge passes replies in TCP that the peer began, from SYN-ACK to the last ACK', () => {
      withWire([], (wire) => {
        assert.equal(wire.out(ACK), 'drop', 'nothing began')
        assert.equal(wire.accept(), 'pass')
        assert.equal(wire.out(ACK), 'pass', 'data')
        wire.in(FIN | ACK)
        assert.equal(wire.out(FIN | ACK), 'pass')
        assert.equal(wire.out(ACK), 'pass', 'after the FINs of both sides')
      })
    })

    test('judge passes no new connection of the endpoint as a reply', () => {
      withWire([], (wire) => {
        wire.accept()
        assert.equal(wire.out(SYN), 'drop')
      })
    })

    test('judge drops a SYN of the endpoint after a SYN of the peer', () => {
      withWire([], (wire) => {
        wire.in(SYN)
        assert.equal(wire.out(SYN), 'drop')
        assert.equal(wire.out(SYN), 'drop', 'also the next one')
      })
    })

    test('judge begins a TCP connection only with SYN without ACK', () => {
      for (const flags of [ACK, SYN | ACK, FIN, RST, SYN | FIN, SYN | RST, 0]) {
        withWire([], (wire) => {
          wire.in(flags)
          assert.equal(wire.out(ACK), 'drop', `flags ${flags}`)
        })
      }
    })

    test('judge passes replies in UDP and SCTP that the peer began, only with that tuple', () => {
      withWire([], (wire, bench) => {
        assert.equal(wire.outUdp(), 'drop')
        wire.inUdp()
        assert.equal(wire.outUdp(), 'pass')
        assert.equal(new Wire(bench, 40001).outUdp(), 'drop', 'another local port')
        assert.equal(new Wire(bench, 40000, 444).outUdp(), 'drop', 'another peer port')
        assert.equal(wire.out(ACK), 'drop', 'another protocol')
        if (maker.lacks?.sctp !== undefined) return
        wire.receive(sctp({ from: 7, to: 8 }))
        assert.equal(wire.send(sctp({ from: 8, to: 7 })), 'pass')
      })
    })

    test('judge passes the reply to an echo request, and no other packet', () => {
      withWire([], (wire) => {
        assert.equal(wire.send(icmp(1, 0, { identifier: 9 })), 'drop', 'unasked')
        wire.receive(icmp(1, 8, { identifier: 9 }))
        assert.equal(wire.send(icmp(1, 0, { identifier: 9 })), 'pass')
        assert.equal(wire.send(icmp(1, 0, { identifier: 8 })), 'drop', 'another identifier')
        assert.equal(wire.send(icmp(1, 8, { identifier: 9 })), 'drop', 'a request of its own')
        assert.equal(wire.send(icmp(1, 3, { identifier: 9 })), 'drop', 'an error')
      })
    })

    test('judge cuts a UDP flow of the endpoint after its allow is removed, although the peer keeps sending', () => {
      withWire(open, (wire, bench) => {
        assert.equal(wire.outUdp(), 'pass')
        wire.inUdp()
        commit(bench.datapath, { policyRemovals: open })
        for (let i = 0; i < 3; i++) {
          wire.inUdp()
          assert.equal(wire.outUdp(), 'drop')
        }
      })
    })

    test('judge cuts an established TCP connection of the endpoint after its allow is removed', () => {
      withWire(open, (wire, bench) => {
        wire.connect()
        assert.equal(wire.out(ACK), 'pass')
        commit(bench.datapath, { policyRemovals: open })
        wire.in(ACK)
        assert.equal(wire.out(ACK), 'drop')
        wire.in(SYN)
        wire.in(ACK)
        assert.equal(wire.out(ACK), 'drop', 'a SYN of the peer does not revive the connection')
        assert.equal(wire.out(SYN | ACK), 'drop')
      })
    })

    test('judge does not let a peer revive a half-open or closed connection of the endpoint', () => {
      withWire(open, (wire, bench) => {
        wire.out(SYN)
        commit(bench.datapath, { policyRemovals: open })
        wire.in(SYN)
        assert.equal(wire.out(SYN | ACK), 'drop', 'half-open')
        wire.in(RST | ACK)
        wire.in(SYN)
        assert.equal(wire.out(SYN | ACK), 'drop', 'reset')
      })
    })

    test('judge keeps a connection that the peer began after a forged RST', () => {
      withWire([], (wire) => {
        wire.accept()
        wire.in(RST)
        assert.equal(wire.out(ACK), 'pass')
        wire.in(ACK)
        assert.equal(wire.out(ACK), 'pass')
        wire.in(FIN | ACK)
        assert.equal(wire.out(FIN | ACK), 'pass')
      })
    })

    test('judge ends replies with a new generation of the endpoint', () => {
      withWire([], (wire, bench) => {
        wire.accept()
        settle(bench, [], { generation: generation(2) })
        assert.equal(wire.out(ACK), 'drop')
      })
    })

    test('judge lets no new generation continue a flow of the old one, although the peer keeps sending', () => {
      withWire(open, (wire, bench) => {
        assert.equal(wire.outUdp(), 'pass')
        wire.inUdp()
        wire.connect()
        settle(bench, [], { generation: generation(2) })
        commit(bench.datapath, { policyRemovals: open })
        for (let i = 0; i < 3; i++) {
          wire.inUdp()
          assert.equal(wire.outUdp(), 'drop', 'UDP')
          wire.in(ACK)
          assert.equal(wire.out(ACK), 'drop', 'TCP')
        }
        const other = new Wire(bench, 40001)
        other.inUdp()
        assert.equal(other.outUdp(), 'pass', 'a flow that the peer begins with the new generation')
      })
    })

    test('judge begins no connection with a packet of one of namegate’s listeners', () => {
      withWire([], (wire, bench) => {
        bench.datapath.exceptions.setListeners([listener(PEER_4, 443)])
        assert.equal(wire.outUdp(), 'pass')
        wire.inUdp()
        bench.datapath.exceptions.setListeners([])
        assert.equal(wire.outUdp(), 'drop')
      })
    })

    test('peers.scan returns established TCP that the endpoint began, and no half-open connection or one that the peer began', () => {
      withWire(open, (wire, bench) => {
        wire.out(SYN)
        assert.deepEqual(peersOf(bench), [], 'half-open')
        wire.in(SYN | ACK)
        wire.out(ACK)
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`])
        new Wire(bench, 80, 50000).accept()
        new Wire(bench, 41001).out(SYN)
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`], 'begun by the peer, half-open')
      })
    })

    test('peers.scan returns a flow of UDP that the endpoint began, and none that the peer began', () => {
      withWire(open, (wire, bench) => {
        new Wire(bench, 53001, 50000).inUdp()
        assert.deepEqual(peersOf(bench), [])
        wire.outUdp()
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`])
        settle(bench, open, { generation: generation(2) })
        if (maker.lacks?.forged === undefined) assert.deepEqual(peersOf(bench), [])
      })
    })

    test('peers.scan returns no connection without a packet of the peer', () => {
      withWire(open, (wire, bench) => {
        wire.out(SYN)
        wire.out(ACK)
        wire.out(ACK)
        assert.deepEqual(peersOf(bench), [])
      })
    })

    test('peers.scan forgets a connection after both FINs, after one RST, and with its generation', () => {
      withWire(open, (wire, bench) => {
        wire.connect()
        wire.out(FIN | ACK)
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`], 'a half-closed connection is open')
        wire.in(FIN | ACK)
        assert.deepEqual(peersOf(bench), [])
        const second = new Wire(bench, 40002)
        second.connect()
        second.in(RST)
        assert.deepEqual(peersOf(bench), [])
        if (maker.lacks?.forged === undefined) {
          second.in(ACK)
          second.out(ACK)
        } else new Wire(bench, 40003).connect()
        assert.deepEqual(
          peersOf(bench),
          [`5 ${PEER_4}`],
          'the RST was forged, so the connection continues',
        )
        settle(bench, open, { generation: generation(2) })
        assert.deepEqual(peersOf(bench), [])
      })
    })

    test('peers.scan sees the end of a connection whose FIN is refused', () => {
      withWire(open, (wire, bench) => {
        wire.connect()
        commit(bench.datapath, { policyRemovals: open })
        assert.equal(wire.out(RST), 'drop')
        assert.deepEqual(peersOf(bench), [])
      })
    })

    test(
      'judge counts a connection over the bound per endpoint, and passes its packets',
      { skip: skipOf(maker, 'connections') },
      () => {
        withBench(maker, { connectionsPerEndpoint: 2 }, (bench) => {
          settle(bench, open)
          for (let port = 1; port <= 3; port++) {
            const wire = new Wire(bench, 40000 + port)
            wire.connect()
            assert.equal(wire.out(ACK), 'pass')
          }
          assert.equal(peersOf(bench).length, 2)
          assert.equal(bench.datapath.reports.counters()['connections_over_limit'], 1)
          const first = new Wire(bench, 40001)
          first.out(FIN | ACK)
          first.in(FIN | ACK)
          new Wire(bench, 40009).connect()
          assert.equal(peersOf(bench).length, 2, 'a closed connection makes room')
        })
      },
    )

    test('restart keeps all connections', () => {
      withWire(open, (wire, bench) => {
        wire.connect()
        const inbound = new Wire(bench, 80, 50000)
        inbound.accept()
        bench.restart()
        settle(bench, open)
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`])
        commit(bench.datapath, { policyRemovals: open })
        assert.equal(inbound.out(ACK), 'pass')
      })
    })
  })
}
