import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACK, RST, SYN } from '../support/packets.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { LEARNED, policy, settle } from './bench.ts'
import { makeMemoryBench } from './memory-bench.ts'
import { peersOf, Wire } from './wire.ts'

const MINUTE = 60_000

test('judge ends replies in UDP after three minutes of silence', () => {
  const clock = new FakeClock()
  const bench = makeMemoryBench({}, clock)
  settle(bench, [])
  const wire = new Wire(bench)
  wire.inUdp()
  for (let i = 0; i < 3; i++) {
    clock.advance(2 * MINUTE)
    assert.equal(wire.outUdp(), 'pass', 'traffic of either side keeps it')
  }
  clock.advance(3 * MINUTE)
  assert.equal(wire.outUdp(), 'drop')
})

test('judge ends replies a minute after the connection was reset or closed', () => {
  const clock = new FakeClock()
  const bench = makeMemoryBench({}, clock)
  settle(bench, [])
  const wire = new Wire(bench)
  wire.accept()
  clock.advance(10 * 60 * MINUTE)
  assert.equal(wire.out(ACK), 'pass', 'an established connection can be silent')
  wire.in(RST)
  clock.advance(MINUTE)
  assert.equal(wire.out(ACK), 'drop')
  wire.in(SYN)
  assert.equal(wire.out(SYN | ACK), 'pass', 'the peer can begin again')
})

test('peers.scan forgets a connection that was silent for longer than tcp-idle', () => {
  const clock = new FakeClock()
  const bench = makeMemoryBench({ connectionsPerEndpoint: 1 }, clock)
  settle(bench, [policy({ identity: LEARNED })])
  new Wire(bench).connect()
  clock.advance(6 * 60 * MINUTE)
  assert.equal(peersOf(bench).length, 1)
  clock.advance(1)
  assert.equal(peersOf(bench).length, 0)
  new Wire(bench, 40001).connect()
  assert.equal(
    peersOf(bench).length,
    1,
    'the forgotten connection no longer counts against the bound',
  )
})

test('peers.scan returns a connection over the bound once there is room', () => {
  const clock = new FakeClock()
  const bench = makeMemoryBench({ connectionsPerEndpoint: 1 }, clock)
  settle(bench, [policy({ identity: LEARNED })])
  const [first, second] = [new Wire(bench), new Wire(bench, 40001)]
  first.connect()
  second.connect()
  first.out(RST)
  second.out(ACK)
  assert.equal(peersOf(bench).length, 0, 'not at once')
  clock.advance(1001)
  second.out(ACK)
  assert.equal(peersOf(bench).length, 1)
})
