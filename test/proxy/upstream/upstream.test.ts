// Forwarding over real loopback sockets: the octets, and the ports and ids that it uses.

import assert from 'node:assert/strict'
import { until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { testSockets } from '../../support/sockets.ts'
import { addressesOf } from '../../support/transport.ts'
import { answering, answerTo, queryFor, type SeenQuery } from '../../support/peers/upstream.ts'

testSockets(
  'Upstream forwards query and answer unchanged except for the id, over UDP and TCP (T1, P7)',
  async (net) => {
    const server = await net.serve()
    const forwarder = await net.forward([server])
    const query = queryFor('www.Example.test', { id: 0x1234, udpSize: 1400 })
    for (const client of [await net.udpClient(forwarder), await net.tcpClient(forwarder)]) {
      const [answer] = await client.ask(query)
      const seen = server.queries.at(-1)
      assert.ok(seen !== undefined && answer !== undefined)
      assert.deepEqual(seen.octets.subarray(2), query.subarray(2))
      assert.deepEqual(answer.subarray(2), answerTo(seen).subarray(2))
      assert.equal(answer.readUInt16BE(0), 0x1234)
    }
    assert.deepEqual(
      server.queries.map((seen) => seen.transport),
      ['udp', 'tcp'],
    )
  },
)

testSockets('Upstream spreads queries over random ports and ids (F2, P10)', async (net) => {
  const server = await net.serve()
  const forwarder = await net.forward([server], { udp: { renewQueries: 16 } })
  const client = await net.udpClient(forwarder)
  const count = 4000
  for (let i = 0; i < count; i += 200) {
    await client.ask(
      ...Array.from({ length: 200 }, (_, k) => queryFor(`n${k}.test`, { id: i + k })),
    )
  }
  const ports = server.queries.map((query) => query.port)
  const ids = server.queries.map((query) => query.id)
  // 4,000 queries of 16 a socket: 250 sockets and the 32 open at the end.
  assert.ok(new Set(ports).size > 230, `${new Set(ports).size} ports`)
  assert.ok(ports.every((port) => port >= 1024))
  assert.ok(Math.min(...ports) < 8000 && Math.max(...ports) > 58_000, 'from the whole range')
  assert.ok(new Set(ids).size > 3800, 'few ids twice: 122 expected of 4,000 draws')
  const topIds = ids.map((id) => id >> 8)
  assert.ok(chiSquare(topIds, 256) < 377, 'top octets at p = 1e-6, 255 degrees of freedom')
  const topPorts = [...new Set(ports)].map((port) => Math.floor((port - 1024) / 4032))
  assert.ok(chiSquare(topPorts, 16) < 57, 'sixteenths of the ports at p = 1e-6, 15 degrees')
  assert.ok(Math.abs(serialCorrelation(ids)) < 0.08, 'no correlation: 5 standard deviations')
})

testSockets('Upstream draws a random socket for each query (F2)', async (net) => {
  const server = await net.serve()
  const forwarder = await net.forward([server])
  const client = await net.udpClient(forwarder)
  for (let i = 0; i < 640; i++) await client.ask(queryFor('a.test', { id: i }))
  const uses = new Map<number, number>()
  for (const { port } of server.queries) uses.set(port, (uses.get(port) ?? 0) + 1)
  // 20 each are expected. 0 or 50 have less than 1 in 10^8 for each of 32.
  assert.equal(uses.size, 32)
  assert.ok(
    [...uses.values()].every((n) => n < 50),
    [...uses.values()].join(' '),
  )
})

/** The chi-squared distance of the counts of values 0..bins-1 from equal counts. */
function chiSquare(values: readonly number[], bins: number): number {
  const counts = Array.from({ length: bins }, () => 0)
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  const expected = values.length / bins
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

function serialCorrelation(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  let product = 0
  let square = 0
  for (let i = 0; i < values.length; i++) {
    const own = (values[i] ?? 0) - mean
    square += own * own
    product += own * ((values[i + 1] ?? mean) - mean)
  }
  return product / square
}

testSockets('Upstream accepts no answer at a port whose ids are guessed (A1)', async (net) => {
  const overUdp: SeenQuery[] = []
  const server = await net.serve((query) => {
    if (query.transport === 'udp') overUdp.push(query)
  })
  const forwarder = await net.forward([server])
  const client = await net.udpClient(forwarder)
  client.send(queryFor('bank.test', { id: 1 }))
  await until('the query', () => overUdp.length === 1)
  const [query] = overUdp
  assert.ok(query)
  // The attacker knows the port, and finds the id with its last guess.
  const forged = Buffer.from(answerTo(query, { addresses: ['192.0.2.66'] }))
  for (let distance = 20; distance >= 0; distance--) {
    forged.writeUInt16BE((query.id + distance) & 0xffff, 0)
    query.send(Buffer.from(forged))
  }
  const isRepeated = () => server.queries.some(({ transport }) => transport === 'tcp')
  await until('the repetition over TCP', isRepeated)
  const { counters } = forwarder.upstream
  await until('the guesses', () => counters.unexpected + counters.late === 21)
  assert.equal(client.received.length, 0)
  const repeated = server.queries.find(({ transport }) => transport === 'tcp')
  repeated?.send(answerTo(repeated, { addresses: ['192.0.2.1'] }))
  await client.atLeast(1)
  assert.deepEqual(addressesOf(client.received[0]), ['192.0.2.1'])
  assert.equal(forwarder.upstream.inFlight.count, 0)
})

testSockets('Upstream without TCP asks at once from a new port after guesses (A1)', async (net) => {
  const ports: number[] = []
  const server = await net.serve((query) => {
    if (query.transport === 'tcp') return query.hangUp()
    ports.push(query.port)
    if (ports.length === 3) return query.send(answerTo(query))
    for (let i = 1; i < 20; i++) query.send(answerTo(query, { id: query.id ^ i, name: 'x.test' }))
  })
  // Time stands still, so no attempt follows because an answer is overdue.
  const clock = socketClock(new FakeClock())
  const forwarder = await net.forward([server], { clock, udp: { sockets: 1 } })
  const client = await net.udpClient(forwarder)
  const [answer] = await client.ask(queryFor('bank.test', { id: 1 }))
  assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
  assert.equal(new Set(ports).size, 3)
})

testSockets('Upstream asks from a new port after guesses at an id of a port (A1)', async (net) => {
  const server = await net.serve()
  const forwarder = await net.forward([server], { udp: { sockets: 1 } })
  const client = await net.udpClient(forwarder)
  const held: SeenQuery[] = []
  server.behaviour = (query) => {
    if (query.transport === 'udp') held.push(query)
    else query.send(answerTo(query))
  }
  const asks = async (id: number): Promise<SeenQuery> => {
    client.send(queryFor(`n${id}.test`, { id }))
    await until('the query', () => held.length === id)
    return held[id - 1]!
  }
  const guess = (query: SeenQuery, id: number): void => {
    const octets = Buffer.from(answerTo(query))
    octets.writeUInt16BE(id, 0)
    query.send(octets)
  }
  const first = await asks(1)
  const second = await asks(2)
  assert.equal(second.port, first.port)
  const wrong = Array.from({ length: 18 }, (_, k) => k).filter(
    (id) => id !== first.id && id !== second.id,
  )
  for (const id of wrong) guess(second, id)
  const { counters } = forwarder.upstream
  await until('the guesses', () => counters.unexpected === wrong.length)
  const third = await asks(3)
  assert.notEqual(third.port, first.port)
  for (const query of held) query.send(answerTo(query))
  await client.atLeast(3)
  assert.equal(forwarder.upstream.udp[0]?.counters.open, 1, 'the old port closes')
})

testSockets(
  'Upstream renews a socket after its queries and after its age, and old ones drain (A2)',
  async (net) => {
    const server = await net.serve()
    const time = new FakeClock()
    const udp = { sockets: 1, renewQueries: 3 }
    const forwarder = await net.forward([server], { clock: socketClock(time), udp })
    const client = await net.udpClient(forwarder)
    const held: SeenQuery[] = []
    server.behaviour = (query) => held.push(query)
    for (let i = 0; i < 7; i++) {
      client.send(queryFor(`n${i}.test`, { id: i }))
      await until('the query', () => held.length === i + 1)
    }
    const ports = held.map((query) => query.port)
    assert.equal(new Set(ports.slice(0, 3)).size, 1)
    assert.equal(new Set(ports).size, 3)
    assert.equal(forwarder.upstream.udp[0]?.counters.open, 3, 'old sockets wait for their queries')
    for (const query of held) query.send(answerTo(query))
    await client.atLeast(7)
    assert.equal(forwarder.upstream.udp[0]?.counters.open, 1)
    server.behaviour = answering
    time.advance(59_000)
    assert.equal(forwarder.upstream.udp[0]?.counters.open, 1)
    time.advance(1000)
    assert.equal(forwarder.upstream.udp[0]?.counters.open, 0, 'no unused port stays open')
    await client.ask(queryFor('late.test'))
    assert.ok(!ports.includes(server.queries.at(-1)?.port ?? 0), 'renewed by age')
  },
)
