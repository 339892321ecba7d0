// Contract: who began a connection, when it counts as open, and what a reply is.

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
        assert.equal(wire.out(ACK), 'pass', 'after both FINs')
      })
    })

    test('judge passes no new connection of the endpoint as a reply', () => {
      withWire([], (wire) => {
        wire.accept()
        assert.equal(wire.out(SYN), 'drop')
      })
    })

    test('judge takes a SYN of the endpoint for no answer to a SYN of the peer', () => {
      withWire([], (wire) => {
        wire.in(SYN)
        assert.equal(wire.out(SYN), 'drop')
        assert.equal(wire.out(SYN), 'drop', 'nor the next one')
      })
    })

    test('judge takes no TCP packet but SYN without ACK for a beginning', () => {
      for (const flags of [ACK, SYN | ACK, FIN, RST, SYN | FIN, SYN | RST, 0]) {
        withWire([], (wire) => {
          wire.in(flags)
          assert.equal(wire.out(ACK), 'drop', `flags ${flags}`)
        })
      }
    })

    test('judge passes replies in UDP and SCTP that the peer began, on that tuple only', () => {
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

    test('judge answers an echo request, and only with the reply to it', () => {
      withWire([], (wire) => {
        assert.equal(wire.send(icmp(1, 0, { identifier: 9 })), 'drop', 'unasked')
        wire.receive(icmp(1, 8, { identifier: 9 }))
        assert.equal(wire.send(icmp(1, 0, { identifier: 9 })), 'pass')
        assert.equal(wire.send(icmp(1, 0, { identifier: 8 })), 'drop', 'another identifier')
        assert.equal(wire.send(icmp(1, 8, { identifier: 9 })), 'drop', 'a request of its own')
        assert.equal(wire.send(icmp(1, 3, { identifier: 9 })), 'drop', 'an error')
      })
    })

    test('judge cuts a UDP flow of the endpoint once it is revoked, though the peer goes on sending', () => {
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

    test('judge cuts an established TCP connection of the endpoint once it is revoked', () => {
      withWire(open, (wire, bench) => {
        wire.connect()
        assert.equal(wire.out(ACK), 'pass')
        commit(bench.datapath, { policyRemovals: open })
        wire.in(ACK)
        assert.equal(wire.out(ACK), 'drop')
        wire.in(SYN)
        wire.in(ACK)
        assert.equal(wire.out(ACK), 'drop', 'a SYN of the peer takes nothing over')
        assert.equal(wire.out(SYN | ACK), 'drop')
      })
    })

    test('judge does not let a peer take a half-open or closed connection of the endpoint over', () => {
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

    test('judge keeps a connection that the peer began through a forged RST', () => {
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

    test('judge lets no successor continue a flow of its predecessor, though the peer goes on sending', () => {
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
        assert.equal(other.outUdp(), 'pass', 'what the peer begins with the successor')
      })
    })

    test('judge begins no connection from what one of our listeners sends', () => {
      withWire([], (wire, bench) => {
        bench.datapath.exceptions.setListeners([listener(PEER_4, 443)])
        assert.equal(wire.outUdp(), 'pass')
        wire.inUdp()
        bench.datapath.exceptions.setListeners([])
        assert.equal(wire.outUdp(), 'drop')
      })
    })

    test('peers.scan tells established TCP that the endpoint began, no half-open one and none begun by the peer', () => {
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

    test('peers.scan tells a flow of UDP that the endpoint began, and none that the peer began', () => {
      withWire(open, (wire, bench) => {
        new Wire(bench, 53001, 50000).inUdp()
        assert.deepEqual(peersOf(bench), [])
        wire.outUdp()
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`])
        settle(bench, open, { generation: generation(2) })
        if (maker.lacks?.forged === undefined) assert.deepEqual(peersOf(bench), [])
      })
    })

    test('peers.scan needs the answer of the peer: an endpoint alone establishes nothing', () => {
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
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`], 'half-closed is open')
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
        assert.deepEqual(peersOf(bench), [`5 ${PEER_4}`], 'the RST was forged: both go on')
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
      'a bound of connections per endpoint is counted, and the flow passes',
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
          assert.equal(peersOf(bench).length, 2, 'a closed one makes room')
        })
      },
    )

    test('restart forgets no connection', () => {
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
