// TCP clients that ask too much, read too little or stay too long: the bounds and timeouts of docs/spec/semantics 6.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOCAL } from '../../../src/dns/codes.ts'
import { type TcpClient, until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { idsOf, queries } from '../../support/transport.ts'
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
  'TcpServer closes an idle connection; octets of an incomplete message do not prolong it (T6, A21)',
  async (net) => {
    const time = new FakeClock()
    const tcp = { idleTimeout: 10_000, messageTimeout: 60_000 }
    const forwarder = await net.forwardTo(answering, { clock: socketClock(time), tcp })
    const quiet = await net.tcpClient(forwarder)
    const dripping = await net.tcpClient(forwarder)
    const used = await net.tcpClient(forwarder)
    await until('three connections', () => forwarder.tcp.counters.open === 3)
    dripping.socket.write(Buffer.from([0xff, 0xff]))
    for (let second = 0; second < 9; second++) {
      time.advance(1000)
      dripping.socket.write(Buffer.from([0]))
      await used.ask(queryFor('a.test'))
    }
    assert.equal(forwarder.tcp.counters.open, 3)
    time.advance(1500)
    await until('the idle ones to be closed', () => quiet.closed && dripping.closed)
    assert.equal(forwarder.tcp.counters.closedIdle, 2)
    assert.equal(used.closed, false)
  },
)

testSockets(
  'TcpServer closes a connection whose message is not complete in time (A21)',
  async (net) => {
    const time = new FakeClock()
    const forwarder = await net.forwardTo(silent, { clock: socketClock(time) })
    const client = await net.tcpClient(forwarder)
    // The query in flight keeps the connection from being idle. The timeout of the message still applies.
    client.socket.write(Buffer.concat([frame(queryFor('a.test')), Buffer.from([0xff, 0xff])]))
    await until('the query', () => forwarder.tcp.counters.received === 1)
    for (let i = 0; i < 9; i++) {
      time.advance(500)
      client.socket.write(Buffer.from([0]))
      await sleep(2)
    }
    assert.equal(forwarder.tcp.counters.open, 1)
    time.advance(1000)
    await until('the connection to be closed', () => client.closed)
    assert.equal(forwarder.tcp.counters.closedIncomplete, 1)
  },
)

testSockets('TcpServer keeps a connection that completes each message in time', async (net) => {
  const time = new FakeClock()
  const forwarder = await net.forwardTo(answering, { clock: socketClock(time) })
  const client = await net.tcpClient(forwarder)
  const octets = Buffer.concat(queries(6).map(frame))
  const size = frame(queryFor('n0.test')).length
  client.socket.write(octets.subarray(0, 5))
  for (let i = 0; i < 5; i++) {
    await sleep(5)
    time.advance(4000)
    // The rest of one message, and the start of the next.
    client.socket.write(octets.subarray(i * size + 5, (i + 1) * size + 5))
    await client.atLeast(i + 1)
  }
  assert.equal(forwarder.tcp.counters.closedIncomplete, 0)
})

testSockets(
  'TcpServer stops reading at the bound of unanswered queries and resumes',
  async (net) => {
    const held: SeenQuery[] = []
    const forwarder = await net.forwardTo((query) => held.push(query), {
      tcp: { queriesPerConnection: 8 },
    })
    const client = await net.tcpClient(forwarder)
    client.send(...queries(40))
    await until('8 queries', () => held.length === 8)
    await sleep(30)
    assert.equal(held.length, 8)
    for (let answered = 0; answered < 40; answered++) {
      await until('a query', () => held.length > answered)
      const query = held[answered]
      query?.send(answerTo(query))
      assert.ok(held.length - answered <= 8)
    }
    await client.atLeast(40)
    assert.ok(forwarder.tcp.counters.readsPaused > 0)
  },
)

testSockets(
  'TcpServer answers 200,000 pipelined queries from local refusals in flat memory (A22)',
  async (net) => {
    const forwarder = await net.forwardTo(silent, { refuseAll: LOCAL.deniedRefused })
    const client = await net.tcpClient(forwarder)
    const count = 200_000
    const block = Buffer.concat(queries(2000).map(frame))
    let answered = 0
    let open = true
    client.socket.removeAllListeners('data')
    client.socket.on('data', (chunk: Buffer) => (answered += chunk.length))
    client.socket.on('close', () => (open = false))
    const answerOctets = Buffer.concat(queries(2000)).length + 2 * 2000
    let early = 0
    for (let sent = 0; sent < count; sent += 2000) {
      if (!client.socket.write(block)) {
        await new Promise((resolve) => client.socket.once('drain', resolve))
      }
      if (sent === 40_000) early = process.memoryUsage().rss
    }
    await until('all answers', () => answered === (answerOctets * count) / 2000, 8000)
    const grown = process.memoryUsage().rss - early
    assert.ok(open)
    assert.equal(forwarder.tcp.counters.sent, count)
    assert.ok(grown < 64 << 20, `${grown >> 20} MiB more at the end than after a fifth`)
  },
)

testSockets(
  'TcpServer waits for a client that writes 300,000 queries before it reads, then answers all',
  async (net) => {
    const forwarder = await net.forwardTo(silent, { refuseAll: LOCAL.deniedRefused })
    const client = await net.tcpClient(forwarder)
    const { counters } = forwarder.tcp
    const count = 300_000
    let answered = 0
    client.socket.removeAllListeners('data')
    client.socket.pause()
    const block = Buffer.concat(queries(4000).map(frame))
    for (let sent = 0; sent < count; sent += 4000) client.socket.write(block)
    await settled(() => counters.received)
    assert.ok(counters.received < count, `${counters.received} read`)
    assert.equal(counters.open, 1)
    client.socket.on('data', (chunk: Buffer) => (answered += chunk.length))
    client.socket.resume()
    const answerOctets = Buffer.concat(queries(4000)).length + 2 * 4000
    await until('all answers', () => answered === (answerOctets * count) / 4000)
  },
)

/** Waits until a count is above zero and stays the same for 100 ms. */
async function settled(count: () => number): Promise<void> {
  let same = 0
  for (let last = 0; same < 5; last = count()) {
    await sleep(20)
    same = last > 0 && count() === last ? same + 1 : 0
  }
}

testSockets('TcpServer closes a client that never reads its answers (A21)', async (net) => {
  const time = new FakeClock()
  const options = { clock: socketClock(time), refuseAll: LOCAL.deniedRefused }
  const forwarder = await net.forwardTo(silent, options)
  const client = await net.tcpClient(forwarder)
  client.socket.pause()
  const block = Buffer.concat(queries(4000).map(frame))
  for (let sent = 0; sent < 300_000; sent += 4000) client.socket.write(block)
  await settled(() => forwarder.tcp.counters.received)
  time.advance(4500)
  assert.equal(forwarder.tcp.counters.open, 1)
  time.advance(1000)
  assert.equal(forwarder.tcp.counters.closedSlowReader, 1)
  assert.equal(forwarder.tcp.counters.open, 0)
})

testSockets('TcpServer closes a client when more answers than a bound wait for it', async (net) => {
  const forwarder = await net.forwardTo((query) => query.send(answerTo(query, { padding: 60_000 })))
  const client = await net.tcpClient(forwarder)
  client.socket.pause()
  client.send(...queries(2000))
  await until('the close', () => forwarder.tcp.counters.closedSlowReader === 1)
  assert.equal(forwarder.tcp.counters.open, 0)
  const reading = await net.tcpClient(forwarder)
  await reading.ask(queryFor('a.test'))
})

testSockets(
  'TcpServer bounds connections: it closes the oldest idle one, or refuses the new one if none is idle (T10)',
  async (net) => {
    const forwarder = await net.forwardTo(
      (query) => {
        if (query.name !== 'busy.test') query.send(answerTo(query))
      },
      { tcp: { connections: 6, connectionsPerClient: 3 } },
    )
    const { counters } = forwarder.tcp
    const first = await net.tcpClient(forwarder)
    const second = await net.tcpClient(forwarder)
    const third = await net.tcpClient(forwarder)
    await first.ask(queryFor('a.test'))
    const fourth = await net.tcpClient(forwarder)
    await until('the oldest idle one to go', () => second.closed)
    assert.deepEqual([first.closed, third.closed, fourth.closed], [false, false, false])

    for (const client of [first, third, fourth]) client.send(queryFor('busy.test'))
    await until('busy connections', () => forwarder.upstream.inFlight.count === 3)
    const fifth = await net.tcpClient(forwarder)
    await until('a refusal', () => fifth.closed)
    assert.equal(counters.refusedClientFull, 1)

    // Another client has its own share, up to the total.
    const others = [
      await net.tcpClient(forwarder, '127.0.0.2'),
      await net.tcpClient(forwarder, '127.0.0.3'),
      await net.tcpClient(forwarder, '127.0.0.4'),
    ]
    assert.equal(counters.open, 6)
    for (const client of others) client.send(queryFor('busy.test'))
    await until('busy connections', () => forwarder.upstream.inFlight.count === 6)
    const last = await net.tcpClient(forwarder, '127.0.0.5')
    await until('a refusal', () => last.closed)
    assert.equal(counters.refusedFull, 1)
    assert.equal(counters.evicted, 1)
  },
)

testSockets(
  'TcpServer closes the connection of all clients that was idle longest, by messages',
  async (net) => {
    const forwarder = await net.forwardTo(answering, { tcp: { connections: 3 } })
    const clients: TcpClient[] = []
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) {
      clients.push(await net.tcpClient(forwarder, address))
      await until('it to be accepted', () => forwarder.tcp.counters.open === clients.length)
    }
    await clients[0]?.ask(queryFor('a.test'))
    await net.tcpClient(forwarder, '127.0.0.5')
    await until('one to go', () => clients.some((client) => client.closed))
    assert.deepEqual(
      clients.map((client) => client.closed),
      [false, true, false],
    )
  },
)

testSockets(
  'TcpServer continues to read after a bound full of messages that get no answer',
  async (net) => {
    const forwarder = await net.forwardTo(answering, { tcp: { queriesPerConnection: 8 } })
    const client = await net.tcpClient(forwarder)
    const scraps = Array.from({ length: 100 }, () => Buffer.from([1, 2, 3]))
    client.send(...scraps, queryFor('a.test', { id: 5 }))
    await client.atLeast(1)
    assert.deepEqual(idsOf(client.received), [5])
  },
)
