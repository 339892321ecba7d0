// Clients over TCP on loopback: framing, order and ends of connections (RFC 7766).

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { UnavailableError } from '../../../src/core/errors.ts'
import { until } from '../../support/peers/client.ts'
import { LOOPBACK } from '../../support/peers/forwarder.ts'
import { byNumber, idsOf, queries } from '../../support/transport.ts'
import { testSockets } from '../../support/sockets.ts'
import {
  answering,
  answerTo,
  frame,
  queryFor,
  silent,
  type SeenQuery,
} from '../../support/peers/upstream.ts'

testSockets(
  'TcpServer answers 100 queries of one write in the order in which the answers arrive (T2)',
  async (net) => {
    const held: SeenQuery[] = []
    const forwarder = await net.forwardTo((query) => {
      held.push(query)
      if (held.length === 100) for (const one of held.reverse()) one.send(answerTo(one))
    })
    const client = await net.tcpClient(forwarder)
    const answers = await client.ask(...queries(100))
    assert.deepEqual(idsOf(answers), [...Array(100).keys()].reverse())
  },
)

testSockets('TcpServer does not delay queries behind a slow one (T3)', async (net) => {
  const slow: SeenQuery[] = []
  const forwarder = await net.forwardTo((query) => {
    if (query.name === 'n0.test') slow.push(query)
    else query.send(answerTo(query))
  })
  const client = await net.tcpClient(forwarder)
  client.send(...queries(10))
  await client.atLeast(9)
  assert.deepEqual(idsOf(client.received), [1, 2, 3, 4, 5, 6, 7, 8, 9])
  for (const query of slow) query.send(answerTo(query))
  await client.atLeast(10)
})

testSockets(
  'TcpServer reads messages cut anywhere (T4) and several lengths in one segment',
  async (net) => {
    const forwarder = await net.forwardTo(answering)
    const client = await net.tcpClient(forwarder)
    const octets = Buffer.concat(queries(3).map(frame))
    client.socket.write(octets.subarray(0, 1))
    await sleep(30)
    for (const octet of octets.subarray(1)) {
      client.socket.write(Buffer.from([octet]))
      await sleep(0)
    }
    await client.atLeast(3)
    assert.deepEqual(idsOf(client.received).sort(byNumber), [0, 1, 2])
  },
)

testSockets('TcpServer sends length and message in one segment (T5)', async (net) => {
  const forwarder = await net.forwardTo(answering)
  const client = await net.tcpClient(forwarder)
  const chunks: Buffer[] = []
  client.socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  for (const query of queries(20)) await client.ask(query)
  assert.equal(chunks.length, 20)
  for (const chunk of chunks) assert.equal(chunk.readUInt16BE(0), chunk.length - 2)
})

testSockets(
  'TcpServer sends answers of 65,000 octets, and reads queries beyond a cell',
  async (net) => {
    const forwarder = await net.forwardTo((query) =>
      query.send(answerTo(query, { padding: 60_000 })),
    )
    const client = await net.tcpClient(forwarder)
    const long = Buffer.concat([queryFor('long.test', { udpSize: 1232 }), Buffer.alloc(9000)])
    // 9,000 octets of EDNS padding (RFC 7830): option 12.
    const rdlength = queryFor('long.test', { udpSize: 1232 }).length - 2
    long.writeUInt16BE(9000, rdlength)
    long.writeUInt16BE(12, rdlength + 2)
    long.writeUInt16BE(8996, rdlength + 4)
    const [answer] = await client.ask(long)
    assert.ok((answer?.length ?? 0) > 60_000, `${answer?.length} octets`)
  },
)

testSockets('TcpServer drops answers to a closed connection and continues (T7)', async (net) => {
  const held: SeenQuery[] = []
  const forwarder = await net.forwardTo((query) => held.push(query), { tcp: { connections: 1 } })
  const client = await net.tcpClient(forwarder)
  client.send(...queries(5))
  await until('the queries', () => held.length === 5)
  client.socket.resetAndDestroy()
  await until('the close', () => forwarder.tcp.counters.open === 0)
  // The next connection uses the same slot and gets no answer of the old one.
  const next = await net.tcpClient(forwarder)
  for (const query of held) query.send(answerTo(query))
  await until('the late answers', () => forwarder.tcp.counters.answersDropped === 5)
  await sleep(20)
  assert.equal(next.received.length, 0)
  assert.equal(forwarder.upstream.inFlight.count, 0)
})

testSockets('TcpServer answers the queries before a half-close, then closes (T13)', async (net) => {
  const forwarder = await net.forwardTo((query) => {
    setTimeout(() => query.send(answerTo(query)), 50)
  })
  const client = await net.tcpClient(forwarder)
  client.send(...queries(300))
  client.socket.end()
  await until('the close', () => client.ended)
  assert.equal(client.received.length, 300)
  await until('nothing to be open', () => forwarder.tcp.counters.open === 0)
})

testSockets('TcpServer closes at once at a half-close without queries', async (net) => {
  const forwarder = await net.forwardTo(silent)
  const client = await net.tcpClient(forwarder)
  client.socket.end()
  await until('the close', () => client.ended)
})

testSockets(
  'TcpServer is silent about messages that get no answer, and keeps the connection (A23)',
  async (net) => {
    const forwarder = await net.forwardTo(answering)
    const client = await net.tcpClient(forwarder)
    const reply = queryFor('a.test')
    reply.writeUInt8(0x81, 2)
    client.send(Buffer.alloc(0), Buffer.from([1, 2, 3]), reply, queryFor('b.test', { id: 9 }))
    await client.atLeast(1)
    await sleep(20)
    assert.deepEqual(idsOf(client.received), [9])
  },
)

testSockets('TcpServer names port and remedy when it cannot listen', async (net) => {
  const forwarder = await net.forwardTo(silent)
  const taken = { family: 4, octets: LOOPBACK, port: forwarder.tcpPort, mode: 'explicit' } as const
  assert.throws(
    () => forwarder.tcp.listen(taken),
    (error) => {
      assert.ok(error instanceof UnavailableError)
      assert.match(
        error.message,
        new RegExp(`127.0.0.1:${forwarder.tcpPort} .*already in use: stop`),
      )
      return true
    },
  )
})
