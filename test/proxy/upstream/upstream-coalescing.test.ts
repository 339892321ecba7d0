// The same query again while it is in flight, over real sockets (P2).

import assert from 'node:assert/strict'
import { until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { testSockets } from '../../support/sockets.ts'
import { addressesOf, byNumber, idsOf, rcodeOf } from '../../support/transport.ts'
import { answerTo, queryFor, silent, type SeenQuery } from '../../support/peers/upstream.ts'

testSockets(
  'Upstream asks once for a query that its client repeats, and answers each repetition (P2)',
  async (net) => {
    const held: SeenQuery[] = []
    const server = await net.serve((query) => held.push(query))
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
    const other = await net.udpClient(forwarder)
    for (let i = 0; i < 5; i++) client.send(queryFor('slow.test', { id: 7 }))
    client.send(queryFor('slow.test', { id: 8 }))
    other.send(queryFor('slow.test', { id: 7 }))
    client.send(queryFor('Slow.test', { id: 9 }))
    await until('all', () => forwarder.upstream.counters.forwarded === 8)
    await until('what is asked', () => held.length === 2)
    assert.deepEqual(held.map((query) => query.name).sort(), ['Slow.test', 'slow.test'])
    for (const query of held) query.send(answerTo(query, { addresses: ['192.0.2.9'] }))
    await client.atLeast(7)
    await other.atLeast(1)
    assert.deepEqual([...idsOf(client.received)].sort(byNumber), [7, 7, 7, 7, 7, 8, 9])
    assert.deepEqual(idsOf(other.received), [7], 'another port of the same address')
    for (const answer of client.received) assert.deepEqual(addressesOf(answer), ['192.0.2.9'])
    assert.equal(forwarder.upstream.counters.coalesced, 6)
    assert.equal(forwarder.upstream.inFlight.count, 0)
  },
)

testSockets(
  'Upstream gives UDP followers an answer from TCP, cut for each, and TCP followers none from UDP',
  async (net) => {
    const held: SeenQuery[] = []
    const server = await net.serve((query) => held.push(query))
    const forwarder = await net.forward([server])
    const byTcp = await net.tcpClient(forwarder)
    const byUdp = await net.udpClient(forwarder)
    byTcp.send(queryFor('big.test', { id: 1 }))
    await until('the first', () => forwarder.upstream.counters.forwarded === 1)
    byUdp.send(queryFor('big.test', { id: 2 }))
    await until('the second', () => forwarder.upstream.counters.coalesced === 1)
    await until('the question', () => held.length === 1)
    held[0]?.send(answerTo(held[0], { padding: 2000 }))
    await byTcp.atLeast(1)
    await byUdp.atLeast(1)
    assert.ok((byTcp.received[0]?.length ?? 0) > 2000)
    assert.ok((byUdp.received[0]?.length ?? 0) <= 512)
    assert.equal((byUdp.received[0]?.readUInt8(2) ?? 0) & 2, 2, 'TC')

    byUdp.send(queryFor('other.test', { id: 3 }))
    await until('over UDP', () => held.length === 2)
    byTcp.send(queryFor('other.test', { id: 4 }))
    await until('over TCP as well', () => held.length === 3)
    assert.deepEqual(
      held.slice(1).map((query) => query.transport),
      ['udp', 'tcp'],
    )
  },
)

testSockets('Upstream fails all followers of a query without an answer', async (net) => {
  const time = new FakeClock()
  const server = await net.serve(silent)
  const forwarder = await net.forward([server], { clock: socketClock(time) })
  const client = await net.udpClient(forwarder)
  for (let id = 1; id <= 100; id++) client.send(queryFor('void.test', { id }))
  await until('all', () => forwarder.upstream.counters.forwarded === 100)
  time.advance(4100)
  await client.atLeast(100)
  assert.equal(new Set(idsOf(client.received)).size, 100)
  assert.ok(client.received.every((answer) => rcodeOf(answer) === 2))
  assert.equal(forwarder.upstream.inFlight.count, 0)
  // 64 followers for each of two leaders.
  assert.equal(forwarder.upstream.counters.coalesced, 98)
})
