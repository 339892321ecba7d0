// UDP clients on loopback: batches, messages without an answer, and bounds on size.

import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../../src/core/clock.ts'
import { UnavailableError } from '../../../src/core/errors.ts'
import { type MessageBatch, BatchCollector } from '../../../src/proxy/messages/batch.ts'
import { parseAddress } from '../../../src/core/ip.ts'
import { UdpClient, until } from '../../support/peers/client.ts'
import { openDatagrams } from '../../support/open-sockets.ts'
import { testSockets } from '../../support/sockets.ts'
import { byNumber, rcodeOf } from '../../support/transport.ts'
import { answering, answerTo, queryFor } from '../../support/peers/upstream.ts'
import { MessageView } from '../../../src/dns/message-view.ts'

const FORMERR = 1
testSockets('UdpListener puts the datagrams of one turn into one batch', async (net) => {
  const forwarder = await net.forwardTo(answering)
  const client = await net.udpClient(forwarder)
  await client.ask(...Array.from({ length: 300 }, (_, i) => queryFor('a.test', { id: i })))
  const { batches } = forwarder
  assert.equal(
    batches.reduce((sum, size) => sum + size),
    300,
  )
  assert.ok(Math.max(...batches) > 8, `batches of ${batches.join(', ')}`)
})

testSockets(
  'UdpListener is silent about replies and scraps, and answers anything else once (A23)',
  async (net) => {
    const forwarder = await net.forwardTo(answering)
    const client = await net.udpClient(forwarder)
    const query = queryFor('a.test', { id: 8 })
    for (let length = 0; length < 12; length++) client.send(query.subarray(0, length))
    const reply = Buffer.from(query)
    reply.writeUInt8(0x81, 2)
    client.send(reply)
    client.send(query.subarray(0, 20))
    client.send(query)
    await client.atLeast(2)
    await sleep(20)
    assert.deepEqual(client.received.map(rcodeOf).sort(byNumber), [0, FORMERR])
  },
)

testSockets(
  'UdpListener cuts and marks a datagram over 4,096 octets, which gets FORMERR',
  async (net) => {
    const forwarder = await net.forwardTo(answering)
    const client = await net.udpClient(forwarder)
    const query = queryFor('a.test', { id: 8 })
    const [answer] = await client.ask(Buffer.concat([query, Buffer.alloc(4097 - query.length)]))
    assert.equal((answer?.readUInt8(3) ?? 0) & 15, FORMERR)
    assert.equal(forwarder.udp.counters.oversized, 1)
  },
)

testSockets(
  'UdpListener passes on peers, octets and channel of IPv4 and IPv6, also at the bound of a batch',
  async () => {
    for (const [family, address, type] of [
      [4, '127.0.0.1', 'udp4'],
      [6, '::1', 'udp6'],
    ] as const) {
      const seen: string[] = []
      const onBatch = (batch: MessageBatch) => {
        for (let i = 0; i < batch.count; i++) {
          const message = batch.view(i, new MessageView())
          const text = Buffer.from(message.copy()).toString()
          const peer = Buffer.from(batch.addresses.subarray(i * 16, i * 16 + 16)).toString('hex')
          seen.push(`${batch.channels[i]} ${batch.families[i]} ${peer} ${text}`)
          listener.send(batch, i, message, 0x4142)
        }
      }
      const collector = new BatchCollector({ clock: systemClock, onBatch, batch: { capacity: 4 } })
      const datagrams = openDatagrams(systemClock)
      datagrams.fill(collector)
      const octets = parseAddress(address)?.octets ?? assert.fail(address)
      const listener = datagrams.listen({ channel: 7, family, octets, port: 0, mode: 'explicit' })
      const socket = createSocket(type)
      const back: string[] = []
      socket.on('message', (message) => back.push(message.toString()))
      for (let i = 0; i < 10; i++) socket.send(`m-${i}`, listener.port, address)
      await until('ten messages', () => back.length === 10)
      const hex = family === 4 ? '7f000001'.padEnd(32, '0') : '1'.padStart(32, '0')
      assert.deepEqual(
        seen.sort(),
        Array.from({ length: 10 }, (_, i) => `7 ${family} ${hex} m-${i}`),
      )
      assert.deepEqual(
        back.sort(),
        Array.from({ length: 10 }, (_, i) => `AB${i}`),
      )
      assert.deepEqual([listener.counters.received, listener.counters.sent], [10, 10])
      socket.close()
      listener.stop()
      datagrams.stop()
    }
  },
)

testSockets('UdpListener survives port unreachable from clients that have closed', async (net) => {
  const forwarder = await net.forwardTo((query) => {
    setTimeout(() => query.send(answerTo(query)), 30)
  })
  for (let i = 0; i < 20; i++) {
    const client = await UdpClient.open(forwarder.udpPort)
    client.send(queryFor('a.test'))
    await sleep(1)
    client.close()
  }
  await until('the answers', () => forwarder.udp.counters.sent === 20)
  const client = await net.udpClient(forwarder)
  assert.equal((await client.ask(queryFor('a.test'))).length, 1)
})

testSockets('UdpListener names port and remedy when it cannot listen', async (net) => {
  const forwarder = await net.forwardTo(answering)
  const rows = [
    {
      address: '127.0.0.1',
      port: forwarder.udpPort,
      message: /127\.0\.0\.1:\d+ \(UDP\): port \d+ is already in use: stop/,
    },
    {
      address: '192.0.2.1',
      port: 5300,
      message: /192\.0\.2\.1:5300 \(UDP\): no interface has this address/,
    },
  ]
  for (const { address, port, message } of rows) {
    const octets = parseAddress(address)?.octets ?? assert.fail(address)
    assert.throws(
      () => forwarder.datagrams.listen({ channel: 1, family: 4, octets, port, mode: 'explicit' }),
      (error) => error instanceof UnavailableError && message.test(error.message),
    )
  }
})
