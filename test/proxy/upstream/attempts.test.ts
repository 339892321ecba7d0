// Which server is asked, when, and how often.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { testSockets } from '../../support/sockets.ts'
import { addressesOf, rcodeOf } from '../../support/transport.ts'
import {
  answerTo,
  FakeUpstream,
  queryFor,
  silent,
  type SeenQuery,
} from '../../support/peers/upstream.ts'

const SERVFAIL = 2
/** A little more than an attempt's share of the 4 s. */
const ATTEMPT_MS = 1350
testSockets(
  'Upstream sends at most three packets for a query without an answer, then fails it (A13)',
  async (net) => {
    const time = new FakeClock()
    const server = await net.serve(silent)
    const forwarder = await net.forward([server], { clock: socketClock(time) })
    const client = await net.udpClient(forwarder)
    client.send(queryFor('void.test', { id: 3 }))
    for (let attempt = 1; attempt <= 3; attempt++) {
      await until(`attempt ${attempt}`, () => timesAsked(server, 'void.test') === attempt)
      assert.equal(client.received.length, 0)
      time.advance(ATTEMPT_MS)
    }
    await client.atLeast(1)
    assert.equal(rcodeOf(client.received[0]), SERVFAIL)
    assert.equal(client.received[0]?.readUInt16BE(0), 3)
    time.advance(10_000)
    await sleep(20)
    assert.equal(timesAsked(server, 'void.test'), 3)
    assert.equal(forwarder.upstream.counters.timeouts, 1)
    assert.equal(forwarder.upstream.inFlight.count, 0)
  },
)

testSockets(
  'Upstream keeps its times while queries arrive faster than the precision of its timer',
  async (net) => {
    const time = new FakeClock()
    const server = await net.serve((query) => {
      if (!query.name.startsWith('void')) query.send(answerTo(query))
    })
    const upstream = { attempts: 2 }
    const forwarder = await net.forward([server], { clock: socketClock(time), upstream })
    const client = await net.udpClient(forwarder)
    client.send(queryFor('void1.test', { id: 1 }))
    await until('the first query', () => timesAsked(server, 'void1.test') === 1)
    time.advance(5)
    client.send(queryFor('void2.test', { id: 2 }))
    await until('the second query', () => timesAsked(server, 'void2.test') === 1)
    // The first is asked again. The second is due so soon after it that the timer is set to a later time.
    time.advance(1995)
    for (let i = 0; i < 20; i++) {
      await client.ask(queryFor(`n${i}.test`, { id: 10 + i }))
      time.advance(5)
    }
    await until('the second query again', () => timesAsked(server, 'void2.test') === 2)
  },
)

testSockets(
  'Upstream accepts the answer to an early attempt after a later one was sent',
  async (net) => {
    const time = new FakeClock()
    const server = await net.serve(silent)
    const forwarder = await net.forward([server], { clock: socketClock(time) })
    const client = await net.udpClient(forwarder)
    client.send(queryFor('slow.test'))
    await until('the first attempt', () => server.queries.length === 1)
    time.advance(ATTEMPT_MS)
    await until('the second attempt', () => server.queries.length === 2)
    const [first] = server.queries
    first?.send(answerTo(first))
    await client.atLeast(1)
    assert.deepEqual(addressesOf(client.received[0]), ['192.0.2.1'])
  },
)

testSockets(
  'Upstream waits for an early attempt when the later ones meet a closed port',
  async (net) => {
    const time = new FakeClock()
    const gone = await FakeUpstream.start()
    await gone.stop()
    const slow = await net.serve(silent)
    const forwarder = await net.forward([slow, gone], {
      clock: socketClock(time),
      upstream: { attempts: 2 },
    })
    const client = await net.udpClient(forwarder)
    client.send(queryFor('slow.test'))
    await until('the first attempt', () => slow.queries.length === 1)
    time.advance(2050)
    await until('the refusal', () => forwarder.upstream.udp[1]?.counters.socketErrors === 1)
    await sleep(20)
    assert.equal(client.received.length, 0)
    const [first] = slow.queries
    first?.send(answerTo(first))
    await client.atLeast(1)
    assert.deepEqual(addressesOf(client.received[0]), ['192.0.2.1'])
  },
)

testSockets(
  'Upstream asks again in time after a message with the id of an old query (A1)',
  async (net) => {
    const time = new FakeClock()
    const server = await net.serve((query) => {
      if (!query.name.startsWith('void')) query.send(answerTo(query))
    })
    const upstream = { attempts: 2 }
    const forwarder = await net.forward([server], { clock: socketClock(time), upstream })
    const client = await net.udpClient(forwarder)
    const { counters } = forwarder.upstream
    client.send(queryFor('known.test', { id: 1 }))
    await client.atLeast(1)
    client.send(queryFor('void1.test', { id: 2 }))
    await until('void1', () => timesAsked(server, 'void1.test') === 1)
    const [void1] = server.queries.filter(({ name }) => name === 'void1.test')
    time.advance(4100)
    await client.atLeast(2)
    time.advance(30_000)
    await sleep(20)
    const before = counters.late + counters.unexpected
    void1?.send(answerTo(void1))
    await until('the old answer', () => counters.late + counters.unexpected > before)
    client.send(queryFor('void2.test', { id: 3 }))
    await until('void2', () => timesAsked(server, 'void2.test') === 1)
    time.advance(2000)
    await until('void2 again', () => timesAsked(server, 'void2.test') === 2)
  },
)

testSockets('Upstream drops answers to queries that have failed (A14)', async (net) => {
  const held: SeenQuery[] = []
  const server = await net.serve((query) => {
    if (query.name !== '') held.push(query)
  })
  const time = new FakeClock()
  const forwarder = await net.forward([server], {
    clock: socketClock(time),
    upstream: { attempts: 1 },
  })
  const client = await net.udpClient(forwarder)
  for (let i = 0; i < 500; i++) client.send(queryFor(`n${i}.test`, { id: i }))
  await until('500 queries', () => held.length === 500)
  time.advance(4100)
  await client.atLeast(500)
  const answers = client.received
  assert.ok(answers.every((answer) => rcodeOf(answer) === SERVFAIL))
  for (const query of held) query.send(answerTo(query))
  const { counters } = forwarder.upstream
  await until('late answers', () => counters.late + counters.unexpected === 500)
  // In the table of late answers some replace others: 15 of 500 on average.
  assert.ok(counters.late > 430, `${counters.late} late`)
  assert.equal(forwarder.upstream.pool.stateOf(0), 'up', 'a server that answers late is up')
  for (const query of held) query.send(answerTo(query))
  await until('the same again', () => counters.late + counters.unexpected === 1000)
  assert.ok(counters.unexpected >= 500)
  await sleep(20)
  assert.equal(client.received.length, 500)
  assert.equal(forwarder.upstream.waits.counters.sentTcp, 0, 'late is not spoofed')
})

testSockets(
  'Upstream asks another server when one is silent, and stays with the one that answers',
  async (net) => {
    const time = new FakeClock()
    const [dead, good] = [await net.serve(silent), await net.serve()]
    const forwarder = await net.forward([dead, good], { clock: socketClock(time) })
    const client = await net.udpClient(forwarder)
    for (let i = 1; i <= 3; i++) {
      client.send(queryFor(`n${i}.test`, { id: i }))
      await until('the first attempt', () => timesAsked(dead, `n${i}.test`) === 1)
      // Less than an attempt's share of the time: an overdue answer makes Upstream ask another server at once.
      time.advance(450)
      await client.atLeast(i)
    }
    assert.equal(forwarder.upstream.pool.stateOf(0), 'down')
    // No time passes: Upstream asks the good server first now.
    await client.ask(queryFor('n4.test'))
    assert.equal(timesAsked(dead, 'n4.test'), 0)
    assert.ok(client.received.every((answer) => rcodeOf(answer) === 0))
    assert.equal(forwarder.upstream.pool.counters.failovers, 1)
  },
)

testSockets('Upstream asks a silent server again only after its share of the time', async (net) => {
  const time = new FakeClock()
  const server = await net.serve(silent)
  const forwarder = await net.forward([server], { clock: socketClock(time) })
  const client = await net.udpClient(forwarder)
  client.send(queryFor('void.test'))
  await until('the first attempt', () => timesAsked(server, 'void.test') === 1)
  time.advance(1300)
  await sleep(20)
  assert.equal(timesAsked(server, 'void.test'), 1)
  time.advance(50)
  await until('the second attempt', () => timesAsked(server, 'void.test') === 2)
})

testSockets(
  'Upstream continues at once when the port is closed, and reports a socket error when all are',
  async (net) => {
    const gone = await FakeUpstream.start()
    const good = await net.serve()
    await gone.stop()
    // No time passes, so no timeout ends the attempt.
    const forwarder = await net.forward([gone, good])
    for (const client of [await net.udpClient(forwarder), await net.tcpClient(forwarder)]) {
      const [answer] = await client.ask(queryFor('a.test'))
      assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
    }

    const alone = await net.forward([gone])
    for (const client of [await net.udpClient(alone), await net.tcpClient(alone)]) {
      for (let i = 0; i < 3; i++) {
        const [answer] = await client.ask(queryFor('a.test', { id: i }))
        assert.equal(rcodeOf(answer), SERVFAIL)
        assert.equal(answer?.readUInt16BE(0), i)
      }
    }
    assert.equal(alone.upstream.counters.socketFailures, 6)
    assert.equal(alone.upstream.counters.timeouts, 0)
    assert.equal(alone.upstream.inFlight.count, 0)
  },
)

/** How often a server was asked a name. Probes ask the root. */
function timesAsked(server: FakeUpstream, name: string): number {
  return server.queries.filter((query) => query.name === name).length
}
