// TCP to a server (RFC 7766 6.2).

import assert from 'node:assert/strict'
import dnsPacket from 'dns-packet'
import { until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { testSockets } from '../../support/sockets.ts'
import { addressesOf, rcodeOf } from '../../support/transport.ts'
import { answerTo, queryFor, type SeenQuery } from '../../support/peers/upstream.ts'

/** A little more than an attempt's share of the 4 s. */
const ATTEMPT_MS = 1350
testSockets(
  'Upstream pipelines TCP queries on one connection with distinct ids (T8), and accepts answers in any order (T2, T3)',
  async (net) => {
    const held: SeenQuery[] = []
    const server = await net.serve((query) => {
      held.push(query)
      if (held.length === 100) for (const one of held.reverse()) one.send(answerTo(one))
    })
    const forwarder = await net.forward([server])
    const client = await net.tcpClient(forwarder)
    const queries = Array.from({ length: 100 }, (_, i) => queryFor(`n${i}.test`, { id: 1000 + i }))
    const answers = await client.ask(...queries)
    assert.equal(server.connections, 1)
    assert.equal(new Set(server.queries.map((query) => query.id)).size, 100)
    const byId = new Map(answers.map((answer) => [answer.readUInt16BE(0), answer]))
    for (let i = 0; i < 100; i++) {
      const packet = dnsPacket.decode(byId.get(1000 + i) ?? Buffer.alloc(12))
      assert.equal(packet.questions?.[0]?.name, `n${i}.test`)
    }
  },
)

testSockets('Upstream repeats outstanding queries when the server closes (T9)', async (net) => {
  const server = await net.serve((query, own) => {
    if (own.connections === 1) {
      if (own.seen === 10) query.hangUp()
    } else {
      query.send(answerTo(query))
    }
  })
  const forwarder = await net.forward([server])
  const client = await net.tcpClient(forwarder)
  const answers = await client.ask(
    ...Array.from({ length: 10 }, (_, i) => queryFor(`n${i}.test`, { id: i })),
  )
  assert.ok(answers.every((answer) => rcodeOf(answer) === 0))
  assert.equal(server.connections, 2)
  assert.equal(server.seen, 20)
})

testSockets('Upstream opens a new connection when the old one stays silent', async (net) => {
  const server = await net.serve((query) => {
    if (query.connection > 1) query.send(answerTo(query))
  })
  const time = new FakeClock()
  const forwarder = await net.forward([server], { clock: socketClock(time) })
  const client = await net.tcpClient(forwarder)
  client.send(queryFor('a.test'))
  await until('the query', () => server.seen === 1)
  time.advance(ATTEMPT_MS)
  await client.atLeast(1)
  assert.equal(rcodeOf(client.received[0]), 0)
  await client.ask(queryFor('b.test'))
  assert.equal(server.connections, 2)
  time.advance(12_000)
  assert.equal(forwarder.upstream.tcp[0]?.counters.open, 0, 'closed when idle')
})

testSockets('Upstream drops wrong answers over TCP and accepts the true one (A6)', async (net) => {
  const server = await net.serve((query) => {
    query.send(answerTo(query, { name: 'evil.test' }))
    query.send(answerTo(query, { id: query.id ^ 1 }))
    query.send(Buffer.from([1]))
    query.send(Buffer.alloc(0))
    query.send(answerTo(query))
  })
  const forwarder = await net.forward([server])
  const client = await net.tcpClient(forwarder)
  const [answer] = await client.ask(queryFor('good.test'))
  assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
  assert.equal(server.queries.length, 1)
})

testSockets(
  'Upstream keeps a server up that answers over UDP and closes every TCP connection',
  async (net) => {
    const server = await net.serve((query) => {
      if (query.transport === 'tcp') query.hangUp()
      else query.send(answerTo(query))
    })
    const forwarder = await net.forward([server])
    const byUdp = await net.udpClient(forwarder)
    const byTcp = await net.tcpClient(forwarder)
    for (let i = 0; i < 5; i++) {
      await byUdp.ask(queryFor(`u${i}.test`, { id: i }))
      const [answer] = await byTcp.ask(queryFor(`t${i}.test`, { id: i }))
      assert.equal(rcodeOf(answer), 2)
    }
    assert.equal(forwarder.upstream.pool.stateOf(0), 'up')
  },
)
