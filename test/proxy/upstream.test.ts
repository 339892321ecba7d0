// Forwarding over real loopback sockets against a programmable name server: what is accepted as an answer,
// what is asked again, where and how often.

import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { after, afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import dnsPacket from 'dns-packet'
import { TcpClient, UdpClient, until } from '../support/client.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { Forwarder, socketClock, type ForwarderOptions } from '../support/forwarder.ts'
import {
  answering,
  answerTo,
  FakeUpstream,
  queryFor,
  silent,
  type SeenQuery,
} from '../support/upstream.ts'

const SERVFAIL = 2
/** A little more than an attempt's share of the 4 s. */
const ATTEMPT_MS = 1350

const opened: { stop(): Promise<void> | void }[] = []

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.stop()
})
after(() => assert.equal(opened.length, 0))

async function serve(behaviour = answering): Promise<FakeUpstream> {
  const server = await FakeUpstream.start(behaviour)
  opened.push(server)
  return server
}

async function forward(
  servers: readonly FakeUpstream[],
  options: Omit<ForwarderOptions, 'servers'> = {},
): Promise<Forwarder> {
  const forwarder = await Forwarder.start({
    servers: servers.map((server) => server.address),
    ...options,
  })
  opened.push(forwarder)
  return forwarder
}

async function udpClient(forwarder: Forwarder, address?: string): Promise<UdpClient> {
  const client = await UdpClient.open(forwarder.udpPort, address)
  opened.push({ stop: () => client.close() })
  return client
}

async function tcpClient(forwarder: Forwarder): Promise<TcpClient> {
  const client = await TcpClient.open(forwarder.tcpPort)
  opened.push({ stop: () => client.close() })
  return client
}

function rcodeOf(octets: Buffer | undefined): number {
  return (octets?.readUInt8(3) ?? 0xff) & 15
}

function addressesOf(octets: Buffer | undefined): readonly unknown[] {
  if (octets === undefined) return ['no answer']
  return (dnsPacket.decode(octets).answers ?? []).flatMap((answer) =>
    answer.type === 'A' ? [answer.data] : [],
  )
}

test('Upstream passes query and answer byte for byte but for the id, over UDP and TCP (T1, P7)', async () => {
  const server = await serve()
  const forwarder = await forward([server])
  const query = queryFor('www.Example.test', { id: 0x1234, udpSize: 1400 })
  for (const client of [await udpClient(forwarder), await tcpClient(forwarder)]) {
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
})

test('Upstream spreads queries over random ports and ids (F2, P10)', async () => {
  const server = await serve()
  const forwarder = await forward([server], { udp: { renewQueries: 16 } })
  const client = await udpClient(forwarder)
  const count = 4000
  for (let i = 0; i < count; i += 200) {
    await client.ask(...Array.from({ length: 200 }, (_, k) => queryFor('a.test', { id: i + k })))
  }
  const ports = server.queries.map((query) => query.port)
  const ids = server.queries.map((query) => query.id)
  // 4,000 queries of 16 a socket: 250 sockets and the 32 open at the end.
  assert.ok(new Set(ports).size > 230, `${new Set(ports).size} ports`)
  assert.ok(ports.every((port) => port >= 1024))
  assert.ok(Math.min(...ports) < 8000 && Math.max(...ports) > 58_000, 'from the whole range')
  assert.ok(new Set(ids).size > 3800, 'few ids twice: 122 expected of 4,000 draws')
  assert.ok(chiSquare(ids) < 377, 'top octets uniform at p = 1e-6, 255 degrees of freedom')
  assert.ok(Math.abs(serialCorrelation(ids)) < 0.08, 'no correlation: 5 standard deviations')
})

test('Upstream draws the socket of each query at random (F2)', async () => {
  const server = await serve()
  const forwarder = await forward([server])
  const client = await udpClient(forwarder)
  const count = 960
  for (let i = 0; i < count; i += 160) {
    await client.ask(...Array.from({ length: 160 }, (_, k) => queryFor('a.test', { id: i + k })))
  }
  const uses = new Map<number, number>()
  for (const { port } of server.queries) uses.set(port, (uses.get(port) ?? 0) + 1)
  // 30 each are expected; 4 or 70 are further off than 1 in 10^8 for each of 32.
  assert.equal(uses.size, 32)
  assert.ok(
    [...uses.values()].every((n) => n > 4 && n < 70),
    [...uses.values()].join(' '),
  )
})

function chiSquare(ids: readonly number[]): number {
  const bins = new Array<number>(256).fill(0)
  for (const id of ids) bins[id >> 8] = (bins[id >> 8] ?? 0) + 1
  const expected = ids.length / 256
  return bins.reduce((sum, bin) => sum + (bin - expected) ** 2 / expected, 0)
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

test('Upstream renews a socket after its queries and after its age, and old ones drain (A2)', async () => {
  const server = await serve()
  const time = new FakeClock()
  const udp = { sockets: 1, renewQueries: 3 }
  const forwarder = await forward([server], { clock: socketClock(time), udp })
  const client = await udpClient(forwarder)
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
  assert.equal(forwarder.upstream.udp[0]?.counters.open, 0, 'no port stays open unused')
  await client.ask(queryFor('late.test'))
  assert.ok(!ports.includes(server.queries.at(-1)?.port ?? 0), 'renewed by age')
})

test('Upstream drops what is no answer and takes the true one after it (A5, A6, Q3)', async () => {
  const wrong: Record<string, (query: SeenQuery) => Buffer> = {
    'nothing at all': () => Buffer.alloc(0),
    'one octet': () => Buffer.from([1]),
    'header cut short': (query) => answerTo(query).subarray(0, 11),
    'header only, NOERROR': (query) => edit(answerTo(query).subarray(0, 12), [[5, 0]]),
    'QDCOUNT 0, NXDOMAIN': (query) => edit(answerTo(query, { rcode: 3 }), [[5, 0]]),
    'QR=0': (query) => edit(answerTo(query), [[2, 0x01]]),
    'opcode 4': (query) => edit(answerTo(query), [[2, 0xa1]]),
    'QDCOUNT 2': (query) => edit(answerTo(query), [[5, 2]]),
    'other name': (query) => answerTo(query, { name: 'evil.test' }),
    'other type': (query) => edit(answerTo(query), [[12 + 'good.test'.length + 3, 28]]),
    'other class': (query) => edit(answerTo(query), [[12 + 'good.test'.length + 5, 3]]),
    'name cut by a bad pointer': (query) => edit(answerTo(query), [[12, 0xc0]]),
    'wrong id and TC': (query) => answerTo(query, { id: query.id ^ 1, flags: 0x0200 }),
    'wrong id': (query) => answerTo(query, { id: query.id ^ 0x8000, addresses: ['198.51.100.66'] }),
  }
  const server = await serve(silent)
  // TCP attempts after the mismatch get nothing: the true answer comes by UDP.
  server.behaviour = (query) => {
    if (query.transport === 'tcp') return
    for (const make of Object.values(wrong)) query.send(make(query))
    setTimeout(() => query.send(answerTo(query)), 50)
  }
  const forwarder = await forward([server])
  const client = await udpClient(forwarder)
  const [answer] = await client.ask(queryFor('good.test', { id: 77 }))
  assert.equal(answer?.readUInt16BE(0), 77)
  assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
  const { mismatched, unexpected } = forwarder.upstream.counters
  assert.equal(mismatched + unexpected, Object.keys(wrong).length)
  assert.equal(forwarder.upstream.attempts.counters.mismatchRepeats, 1, 'over TCP once [A13]')
  assert.equal(client.received.length, 1)
})

function edit(octets: Buffer, changes: readonly (readonly [number, number])[]): Buffer {
  const copy = Buffer.from(octets)
  for (const [at, value] of changes) copy.writeUInt8(value, at)
  return copy
}

test('Upstream passes an error without question and accepts another letter case (Q3, A15)', async () => {
  const server = await serve((query) => {
    if (query.name === 'refused.test') {
      query.send(edit(answerTo(query, { rcode: 5, addresses: [] }).subarray(0, 12), [[5, 0]]))
    } else {
      query.send(answerTo(query, { name: query.name.toUpperCase() }))
    }
  })
  const forwarder = await forward([server])
  const client = await udpClient(forwarder)
  const [refused] = await client.ask(queryFor('refused.test'))
  assert.equal(rcodeOf(refused), 5)
  assert.equal(refused?.length, 12)
  const [answer] = await client.ask(queryFor('mixed.test'))
  assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
  assert.equal(forwarder.upstream.counters.mismatched, 0)
})

test('Upstream asks over TCP at the first mismatch and takes that answer (A4)', async () => {
  const server = await serve()
  const forwarder = await forward([server])
  const client = await udpClient(forwarder)
  const rows: Record<string, (query: SeenQuery, i: number) => Buffer> = {
    'wrong id': (query, i) => answerTo(query, { id: query.id ^ i }),
    'right id, wrong name': (query, i) => answerTo(query, { name: `evil${i}.test` }),
  }
  for (const [reason, make] of Object.entries(rows)) {
    server.queries.length = 0
    server.behaviour = (query) => {
      if (query.transport === 'tcp') query.send(answerTo(query, { addresses: ['192.0.2.77'] }))
      else for (let i = 1; i < 5; i++) query.send(make(query, i))
    }
    const [answer] = await client.ask(queryFor('spoofed.test', { id: 9 }))
    assert.deepEqual(addressesOf(answer), ['192.0.2.77'], reason)
    assert.equal(answer?.readUInt16BE(0), 9)
    const transports = server.queries.map((query) => query.transport)
    assert.deepEqual(transports, ['udp', 'tcp'], reason)
  }
})

test('Upstream accepts nothing of a flood of ids from another address or of wrong ids (A1, A3)', async () => {
  const server = await serve(silent)
  const forwarder = await forward([server])
  const client = await udpClient(forwarder)
  client.send(queryFor('bank.test', { id: 5 }))
  await until('the query', () => server.queries.length === 1)
  const query = server.queries[0]
  assert.ok(query !== undefined)
  const stranger = createSocket('udp4')
  await new Promise<void>((resolve) => stranger.bind(0, '127.0.0.2', resolve))
  const evil = answerTo(query, { addresses: ['198.51.100.66'] })
  for (let id = 0; id < 65536; id++) {
    evil.writeUInt16BE(id, 0)
    stranger.send(Buffer.from(evil), query.port, '127.0.0.1')
    if (id % 512 === 0) await sleep(0)
  }
  assert.equal(forwarder.upstream.counters.unexpected, 0, 'the kernel drops another source')
  for (let id = 1; id <= 500; id++) {
    query.send(answerTo(query, { id: (query.id + id) & 0xffff, addresses: ['198.51.100.66'] }))
  }
  await until('the flood', () => forwarder.upstream.counters.unexpected === 500)
  query.send(answerTo(query))
  await client.atLeast(1)
  assert.deepEqual(addressesOf(client.received[0]), ['192.0.2.1'])
  stranger.close()
})

test('Upstream gives each client its own id, name case and TTL whatever order answers take (A10, F3)', async () => {
  const server = await serve(silent)
  const held: SeenQuery[] = []
  server.behaviour = (query) => held.push(query)
  const forwarder = await forward([server])
  const names = ['same.test', 'SAME.test', 'sAmE.test', 'other.test', 'same.test']
  const port = await freePort()
  const clients: UdpClient[] = []
  for (let i = 0; i < 10; i++) {
    const client = await UdpClient.open(forwarder.udpPort, `127.0.0.${10 + i}`, port)
    opened.push({ stop: () => client.close() })
    clients.push(client)
    client.send(queryFor(names[i % names.length] ?? '', { id: 4711 }))
    await until('the query', () => held.length === i + 1)
  }
  // Nobody is answered by another's query: one query each (F3).
  held
    .map((query, i) => [query, i] as const)
    .reverse()
    .forEach(([query, i]) => query.send(answerTo(query, { ttl: 100 + i })))
  for (const [i, client] of clients.entries()) {
    await client.atLeast(1)
    const packet = dnsPacket.decode(client.received[0] ?? Buffer.alloc(0))
    assert.equal(packet.id, 4711)
    assert.equal(packet.questions?.[0]?.name, names[i % names.length])
    const [answer] = packet.answers ?? []
    assert.equal(answer?.type === 'A' ? answer.ttl : undefined, 100 + i)
  }
})

async function freePort(): Promise<number> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '0.0.0.0', resolve))
  const { port } = socket.address()
  socket.close()
  return port
}

test('Upstream sends at most three packets for a query that nobody answers, then fails it (A13)', async () => {
  const time = new FakeClock()
  const server = await serve(silent)
  const forwarder = await forward([server], { clock: socketClock(time) })
  const client = await udpClient(forwarder)
  client.send(queryFor('void.test', { id: 3 }))
  for (let attempt = 1; attempt <= 3; attempt++) {
    await until(`attempt ${attempt}`, () => server.queries.length === attempt)
    assert.equal(client.received.length, 0)
    time.advance(ATTEMPT_MS)
  }
  await client.atLeast(1)
  assert.equal(rcodeOf(client.received[0]), SERVFAIL)
  assert.equal(client.received[0]?.readUInt16BE(0), 3)
  time.advance(10_000)
  await sleep(20)
  assert.equal(server.queries.length, 3)
  assert.equal(forwarder.upstream.counters.timeouts, 1)
  assert.equal(forwarder.upstream.inFlight.count, 0)
})

test('Upstream lets an early attempt answer after a later one was sent', async () => {
  const time = new FakeClock()
  const server = await serve(silent)
  const forwarder = await forward([server], { clock: socketClock(time) })
  const client = await udpClient(forwarder)
  client.send(queryFor('slow.test'))
  await until('the first attempt', () => server.queries.length === 1)
  time.advance(ATTEMPT_MS)
  await until('the second attempt', () => server.queries.length === 2)
  const [first] = server.queries
  first?.send(answerTo(first))
  await client.atLeast(1)
  assert.deepEqual(addressesOf(client.received[0]), ['192.0.2.1'])
})

test('Upstream waits for an early attempt when the later ones meet a closed port', async () => {
  const time = new FakeClock()
  const gone = await FakeUpstream.start()
  await gone.stop()
  const slow = await serve(silent)
  const forwarder = await forward([slow, gone], {
    clock: socketClock(time),
    upstream: { attempts: 2 },
  })
  const client = await udpClient(forwarder)
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
})

test('Upstream drops answers to queries that have failed (A14)', async () => {
  const held: SeenQuery[] = []
  const server = await serve((query) => held.push(query))
  const time = new FakeClock()
  const forwarder = await forward([server], { clock: socketClock(time), upstream: { attempts: 1 } })
  const client = await udpClient(forwarder)
  for (let i = 0; i < 500; i++) client.send(queryFor(`n${i}.test`, { id: i }))
  await until('500 queries', () => held.length === 500)
  time.advance(4100)
  await client.atLeast(500)
  const answers = client.received
  assert.ok(answers.every((answer) => rcodeOf(answer) === SERVFAIL))
  for (const query of held) query.send(answerTo(query))
  await until('late answers', () => forwarder.upstream.counters.unexpected === 500)
  await sleep(20)
  assert.equal(client.received.length, 500)
  assert.equal(forwarder.upstream.attempts.counters.sentTcp, 0, 'late is not spoofed')
})

test('Upstream asks another server when one is silent, and stays with the one that answers', async () => {
  const time = new FakeClock()
  const [dead, good] = [await serve(silent), await serve()]
  const forwarder = await forward([dead, good], { clock: socketClock(time) })
  const client = await udpClient(forwarder)
  client.send(queryFor('one.test'))
  await until('the first attempt', () => dead.queries.length === 1)
  time.advance(ATTEMPT_MS)
  await client.atLeast(1)
  // No time passes: the good server is asked first now.
  await client.ask(queryFor('two.test'))
  assert.equal(good.queries.length, 2)
  assert.equal(dead.queries.length, 1)
  assert.equal(forwarder.upstream.pool.counters.failovers, 1)
})

test('Upstream goes on at once when the port is closed, and reports a socket error when all are', async () => {
  const gone = await FakeUpstream.start()
  const good = await serve()
  await gone.stop()
  // No time passes, so no timeout can help.
  const forwarder = await forward([gone, good])
  for (const client of [await udpClient(forwarder), await tcpClient(forwarder)]) {
    const [answer] = await client.ask(queryFor('a.test'))
    assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
  }

  const alone = await forward([gone])
  for (const client of [await udpClient(alone), await tcpClient(alone)]) {
    const [answer] = await client.ask(queryFor('a.test'))
    assert.equal(rcodeOf(answer), SERVFAIL)
  }
  assert.equal(alone.upstream.counters.socketFailures, 2)
  assert.equal(alone.upstream.counters.timeouts, 0)
  assert.equal(alone.upstream.inFlight.count, 0)
})

test('Upstream pipelines TCP queries on one connection with distinct ids (T8), answers in any order (T2, T3)', async () => {
  const held: SeenQuery[] = []
  const server = await serve((query) => {
    held.push(query)
    if (held.length === 100) for (const one of held.reverse()) one.send(answerTo(one))
  })
  const forwarder = await forward([server])
  const client = await tcpClient(forwarder)
  const queries = Array.from({ length: 100 }, (_, i) => queryFor(`n${i}.test`, { id: 1000 + i }))
  const answers = await client.ask(...queries)
  assert.equal(server.connections, 1)
  assert.equal(new Set(server.queries.map((query) => query.id)).size, 100)
  const byId = new Map(answers.map((answer) => [answer.readUInt16BE(0), answer]))
  for (let i = 0; i < 100; i++) {
    const packet = dnsPacket.decode(byId.get(1000 + i) ?? Buffer.alloc(12))
    assert.equal(packet.questions?.[0]?.name, `n${i}.test`)
  }
})

test('Upstream asks again what was outstanding when the server closes (T9)', async () => {
  const server = await serve((query, own) => {
    if (own.connections === 1) {
      if (own.seen === 10) query.hangUp()
    } else {
      query.send(answerTo(query))
    }
  })
  const forwarder = await forward([server])
  const client = await tcpClient(forwarder)
  const answers = await client.ask(
    ...Array.from({ length: 10 }, (_, i) => queryFor(`n${i}.test`, { id: i })),
  )
  assert.ok(answers.every((answer) => rcodeOf(answer) === 0))
  assert.equal(server.connections, 2)
  assert.equal(server.seen, 20)
})

test('Upstream opens a new connection when the old one stays silent', async () => {
  const server = await serve((query) => {
    if (query.connection > 1) query.send(answerTo(query))
  })
  const time = new FakeClock()
  const forwarder = await forward([server], { clock: socketClock(time) })
  const client = await tcpClient(forwarder)
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

test('Upstream drops wrong answers over TCP and takes the true one (A6)', async () => {
  const server = await serve((query) => {
    query.send(answerTo(query, { name: 'evil.test' }))
    query.send(answerTo(query, { id: query.id ^ 1 }))
    query.send(Buffer.from([1]))
    query.send(Buffer.alloc(0))
    query.send(answerTo(query))
  })
  const forwarder = await forward([server])
  const client = await tcpClient(forwarder)
  const [answer] = await client.ask(queryFor('good.test'))
  assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
  assert.equal(server.queries.length, 1)
})
