// Clients over TCP on loopback: framing, order, bounds and timeouts of RFC 7766 and SEMANTICS 6.

import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { UnavailableError } from '../../src/core/errors.ts'
import { LOCAL } from '../../src/dns/codes.ts'
import { TcpClient, until } from '../support/client.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Forwarder, socketClock, type ForwarderOptions } from '../support/forwarder.ts'
import {
  answering,
  answerTo,
  FakeUpstream,
  frame,
  queryFor,
  silent,
  type Behaviour,
  type SeenQuery,
} from '../support/upstream.ts'

const opened: { stop(): Promise<void> | void }[] = []

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.stop()
})

async function forward(
  behaviour: Behaviour,
  options: Omit<ForwarderOptions, 'servers'> = {},
): Promise<Forwarder> {
  const server = await FakeUpstream.start(behaviour)
  opened.push(server)
  const forwarder = await Forwarder.start({ servers: [server.address], ...options })
  opened.push(forwarder)
  return forwarder
}

async function connectTo(forwarder: Forwarder, address?: string): Promise<TcpClient> {
  const client = await TcpClient.open(forwarder.tcpPort, address)
  opened.push({ stop: () => client.close() })
  return client
}

function queries(count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => queryFor(`n${i}.test`, { id: i }))
}

function idsOf(answers: readonly Buffer[]): number[] {
  return answers.map((answer) => answer.readUInt16BE(0))
}

test('TcpServer answers 100 queries of one write in the order the answers come (T2)', async () => {
  const held: SeenQuery[] = []
  const forwarder = await forward((query) => {
    held.push(query)
    if (held.length === 100) for (const one of held.reverse()) one.send(answerTo(one))
  })
  const client = await connectTo(forwarder)
  const answers = await client.ask(...queries(100))
  assert.deepEqual(idsOf(answers), [...Array(100).keys()].reverse())
})

test('TcpServer does not let a slow query hold up the ones behind it (T3)', async () => {
  const slow: SeenQuery[] = []
  const forwarder = await forward((query) => {
    if (query.name === 'n0.test') slow.push(query)
    else query.send(answerTo(query))
  })
  const client = await connectTo(forwarder)
  client.send(...queries(10))
  await client.atLeast(9)
  assert.deepEqual(idsOf(client.received), [1, 2, 3, 4, 5, 6, 7, 8, 9])
  for (const query of slow) query.send(answerTo(query))
  await client.atLeast(10)
})

test('TcpServer takes messages cut anywhere (T4) and several lengths in one segment', async () => {
  const forwarder = await forward(answering)
  const client = await connectTo(forwarder)
  const octets = Buffer.concat(queries(3).map(frame))
  client.socket.write(octets.subarray(0, 1))
  await sleep(30)
  for (const octet of octets.subarray(1)) {
    client.socket.write(Buffer.from([octet]))
    await sleep(0)
  }
  await client.atLeast(3)
  assert.deepEqual(idsOf(client.received).sort(), [0, 1, 2])
})

test('TcpServer sends length and message in one segment (T5)', async () => {
  const forwarder = await forward(answering)
  const client = await connectTo(forwarder)
  const chunks: Buffer[] = []
  client.socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  for (const query of queries(20)) await client.ask(query)
  assert.equal(chunks.length, 20)
  for (const chunk of chunks) assert.equal(chunk.readUInt16BE(0), chunk.length - 2)
})

test('TcpServer carries answers of 65,000 octets and queries beyond a cell', async () => {
  const forwarder = await forward((query) => query.send(answerTo(query, { padding: 60_000 })))
  const client = await connectTo(forwarder)
  const long = Buffer.concat([queryFor('long.test', { udpSize: 1232 }), Buffer.alloc(9000)])
  // 9,000 octets of EDNS padding (RFC 7830): option 12.
  const rdlength = queryFor('long.test', { udpSize: 1232 }).length - 2
  long.writeUInt16BE(9000, rdlength)
  long.writeUInt16BE(12, rdlength + 2)
  long.writeUInt16BE(8996, rdlength + 4)
  const [answer] = await client.ask(long)
  assert.ok((answer?.length ?? 0) > 60_000, `${answer?.length} octets`)
})

test('TcpServer closes an idle connection; octets of no whole message do not prolong it (T6, A21)', async () => {
  const time = new FakeClock()
  const tcp = { idleTimeout: 10_000, messageTimeout: 60_000 }
  const forwarder = await forward(answering, { clock: socketClock(time), tcp })
  const quiet = await connectTo(forwarder)
  const dripping = await connectTo(forwarder)
  const used = await connectTo(forwarder)
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
})

test('TcpServer closes a connection whose message is not complete in time (A21)', async () => {
  const time = new FakeClock()
  const forwarder = await forward(silent, { clock: socketClock(time) })
  const client = await connectTo(forwarder)
  // A query in flight makes the connection not idle; the timeout for the message holds all the same.
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
})

test('TcpServer keeps a connection that completes each message in time', async () => {
  const time = new FakeClock()
  const forwarder = await forward(answering, { clock: socketClock(time) })
  const client = await connectTo(forwarder)
  const octets = Buffer.concat(queries(6).map(frame))
  const size = frame(queryFor('n0.test')).length
  client.socket.write(octets.subarray(0, 5))
  for (let i = 0; i < 5; i++) {
    await sleep(5)
    time.advance(4000)
    // The rest of one message, and the beginning of the next.
    client.socket.write(octets.subarray(i * size + 5, (i + 1) * size + 5))
    await client.atLeast(i + 1)
  }
  assert.equal(forwarder.tcp.counters.closedIncomplete, 0)
})

test('TcpServer sends nothing to a client that has gone and goes on (T7)', async () => {
  const held: SeenQuery[] = []
  const forwarder = await forward((query) => held.push(query), { tcp: { connections: 1 } })
  const client = await connectTo(forwarder)
  client.send(...queries(5))
  await until('the queries', () => held.length === 5)
  client.socket.resetAndDestroy()
  await until('the close', () => forwarder.tcp.counters.open === 0)
  // The next connection takes the same slot and isn't mistaken for the old one.
  const next = await connectTo(forwarder)
  for (const query of held) query.send(answerTo(query))
  await until('the late answers', () => forwarder.tcp.counters.answersDropped === 5)
  await sleep(20)
  assert.equal(next.received.length, 0)
  assert.equal(forwarder.upstream.inFlight.count, 0)
})

test('TcpServer answers what was asked before a half-close, then closes (T13)', async () => {
  const forwarder = await forward((query) => {
    setTimeout(() => query.send(answerTo(query)), 50)
  })
  const client = await connectTo(forwarder)
  client.send(...queries(300))
  client.socket.end()
  await until('the close', () => client.ended)
  assert.equal(client.received.length, 300)
  await until('nothing to be open', () => forwarder.tcp.counters.open === 0)
})

test('TcpServer closes at once at a half-close without queries', async () => {
  const forwarder = await forward(silent)
  const client = await connectTo(forwarder)
  client.socket.end()
  await until('the close', () => client.ended)
})

test('TcpServer stops reading at the bound of unanswered queries and resumes', async () => {
  const held: SeenQuery[] = []
  const forwarder = await forward((query) => held.push(query), { tcp: { queriesPerConnection: 8 } })
  const client = await connectTo(forwarder)
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
})

test('TcpServer answers 200,000 pipelined queries from local refusals in flat memory (A22)', async () => {
  const forwarder = await forward(silent, { refuseAll: LOCAL.deniedRefused })
  const client = await connectTo(forwarder)
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
})

test('TcpServer waits for a client that writes 300,000 queries before it reads, then answers all', async () => {
  const forwarder = await forward(silent, { refuseAll: LOCAL.deniedRefused })
  const client = await connectTo(forwarder)
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
})

/** Resolves once a count has been above zero and the same for 100 ms. */
async function settled(count: () => number): Promise<void> {
  let same = 0
  for (let last = 0; same < 5; last = count()) {
    await sleep(20)
    same = last > 0 && count() === last ? same + 1 : 0
  }
}

test('TcpServer closes a client that never reads its answers (A21)', async () => {
  const time = new FakeClock()
  const options = { clock: socketClock(time), refuseAll: LOCAL.deniedRefused }
  const forwarder = await forward(silent, options)
  const client = await connectTo(forwarder)
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

test('TcpServer closes a client for which more than a bound of answers waits', async () => {
  const forwarder = await forward((query) => query.send(answerTo(query, { padding: 60_000 })))
  const client = await connectTo(forwarder)
  client.socket.pause()
  client.send(...queries(2000))
  await until('the close', () => forwarder.tcp.counters.closedSlowReader === 1)
  assert.equal(forwarder.tcp.counters.open, 0)
  const reading = await connectTo(forwarder)
  await reading.ask(queryFor('a.test'))
})

test('TcpServer bounds connections: the oldest idle one goes, without one the newcomer is refused (T10)', async () => {
  const forwarder = await forward(
    (query) => {
      if (query.name !== 'busy.test') query.send(answerTo(query))
    },
    { tcp: { connections: 6, connectionsPerClient: 3 } },
  )
  const { counters } = forwarder.tcp
  const first = await connectTo(forwarder)
  const second = await connectTo(forwarder)
  const third = await connectTo(forwarder)
  await first.ask(queryFor('a.test'))
  const fourth = await connectTo(forwarder)
  await until('the oldest idle one to go', () => second.closed)
  assert.deepEqual([first.closed, third.closed, fourth.closed], [false, false, false])

  for (const client of [first, third, fourth]) client.send(queryFor('busy.test'))
  await until('busy connections', () => forwarder.upstream.inFlight.count === 3)
  const fifth = await connectTo(forwarder)
  await until('a refusal', () => fifth.closed)
  assert.equal(counters.refusedClientFull, 1)

  // Another client has its own share, up to the total.
  const others = [
    await connectTo(forwarder, '127.0.0.2'),
    await connectTo(forwarder, '127.0.0.3'),
    await connectTo(forwarder, '127.0.0.4'),
  ]
  assert.equal(counters.open, 6)
  for (const client of others) client.send(queryFor('busy.test'))
  await until('busy connections', () => forwarder.upstream.inFlight.count === 6)
  const last = await connectTo(forwarder, '127.0.0.5')
  await until('a refusal', () => last.closed)
  assert.equal(counters.refusedFull, 1)
  assert.equal(counters.evicted, 1)
})

test('TcpServer closes the one of all clients that was idle longest, by messages', async () => {
  const forwarder = await forward(answering, { tcp: { connections: 3 } })
  const clients: TcpClient[] = []
  for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) {
    clients.push(await connectTo(forwarder, address))
    await until('it to be accepted', () => forwarder.tcp.counters.open === clients.length)
  }
  await clients[0]?.ask(queryFor('a.test'))
  await connectTo(forwarder, '127.0.0.5')
  await until('one to go', () => clients.some((client) => client.closed))
  assert.deepEqual(
    clients.map((client) => client.closed),
    [false, true, false],
  )
})

test('TcpServer goes on reading after a bound full of messages that get no answer', async () => {
  const forwarder = await forward(answering, { tcp: { queriesPerConnection: 8 } })
  const client = await connectTo(forwarder)
  const scraps = Array.from({ length: 100 }, () => Buffer.from([1, 2, 3]))
  client.send(...scraps, queryFor('a.test', { id: 5 }))
  await client.atLeast(1)
  assert.deepEqual(idsOf(client.received), [5])
})

test('TcpServer says nothing to messages that get no answer and keeps the connection (A23)', async () => {
  const forwarder = await forward(answering)
  const client = await connectTo(forwarder)
  const reply = queryFor('a.test')
  reply.writeUInt8(0x81, 2)
  client.send(Buffer.alloc(0), Buffer.from([1, 2, 3]), reply, queryFor('b.test', { id: 9 }))
  await client.atLeast(1)
  await sleep(20)
  assert.deepEqual(idsOf(client.received), [9])
})

test('TcpServer names port and remedy when it cannot listen', async () => {
  const forwarder = await forward(silent)
  await assert.rejects(forwarder.tcp.listen(4, '127.0.0.1', forwarder.tcpPort), (error) => {
    assert.ok(error instanceof UnavailableError)
    assert.match(error.message, new RegExp(`127.0.0.1:${forwarder.tcpPort} .*already in use: stop`))
    return true
  })
})
