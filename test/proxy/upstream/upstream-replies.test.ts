// Which messages count as an answer over UDP (docs/spec/semantics 4).

import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { setTimeout as sleep } from 'node:timers/promises'
import dnsPacket from 'dns-packet'
import { freePort } from '../../support/nodes/free-port.ts'
import { type UdpClient, until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { testSockets } from '../../support/sockets.ts'
import { addressesOf, edit, rcodeOf } from '../../support/transport.ts'
import { answerTo, queryFor, silent, type SeenQuery } from '../../support/peers/upstream.ts'

testSockets(
  'Upstream drops messages that are no answer, and accepts the true answer after them (A5, A6, Q3)',
  async (net) => {
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
      'wrong id': (query) =>
        answerTo(query, { id: query.id ^ 0x8000, addresses: ['198.51.100.66'] }),
    }
    const server = await net.serve(silent)
    // TCP attempts after the mismatch get no answer: the true answer arrives over UDP.
    server.behaviour = (query) => {
      if (query.transport === 'tcp') return
      for (const make of Object.values(wrong)) query.send(make(query))
      setTimeout(() => query.send(answerTo(query)), 50)
    }
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
    const [answer] = await client.ask(queryFor('good.test', { id: 77 }))
    assert.equal(answer?.readUInt16BE(0), 77)
    assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
    const { mismatched, unexpected } = forwarder.upstream.counters
    assert.equal(mismatched + unexpected, Object.keys(wrong).length)
    assert.equal(forwarder.upstream.attempts.counters.mismatchRepeats, 1, 'over TCP once [A13]')
    assert.equal(client.received.length, 1)
  },
)

testSockets(
  'Upstream passes an error without question and accepts another letter case (Q3, A15)',
  async (net) => {
    const server = await net.serve((query) => {
      if (query.name === 'refused.test') {
        query.send(edit(answerTo(query, { rcode: 5, addresses: [] }).subarray(0, 12), [[5, 0]]))
      } else {
        query.send(answerTo(query, { name: query.name.toUpperCase() }))
      }
    })
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
    const [refused] = await client.ask(queryFor('refused.test'))
    assert.equal(rcodeOf(refused), 5)
    assert.equal(refused?.length, 12)
    const [answer] = await client.ask(queryFor('mixed.test'))
    assert.deepEqual(addressesOf(answer), ['192.0.2.1'])
    assert.equal(forwarder.upstream.counters.mismatched, 0)
  },
)

const ASKED_CASES: readonly (readonly [reason: string, asked: string, answered: string])[] = [
  ['the server writes the name in capitals', 'mixed.test', 'MIXED.TEST'],
  ['the client mixes the case, the server writes small letters', 'mIxEd.TeSt', 'mixed.test'],
]

testSockets("Upstream gives the client its name in the client's own letters (A15)", async (net) => {
  for (const [reason, asked, answered] of ASKED_CASES) {
    const server = await net.serve((query) =>
      query.send(answerTo(query, { name: answered, addresses: ['192.0.2.1'] })),
    )
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
    const query = queryFor(asked)
    const [answer] = await client.ask(query)
    const question = [12, 12 + asked.length + 2 + 4] as const
    assert.equal(
      answer?.toString('latin1', ...question),
      query.toString('latin1', ...question),
      reason,
    )
    assert.deepEqual(addressesOf(answer), ['192.0.2.1'], reason)
  }
})

testSockets(
  'Upstream asks over TCP at the first mismatch, and accepts that answer (A4)',
  async (net) => {
    const server = await net.serve()
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
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
  },
)

testSockets(
  'Upstream asks over TCP once more when the connection ends without an answer',
  async (net) => {
    const server = await net.serve()
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
    const asked = () => server.queries.map((query) => query.transport)
    server.behaviour = (query) => {
      if (query.transport === 'udp') query.send(answerTo(query, { name: 'evil.test' }))
      else if (asked().length === 2) query.hangUp()
      else query.send(answerTo(query, { addresses: ['192.0.2.77'] }))
    }
    const [answer] = await client.ask(queryFor('spoofed.test', { id: 9 }))
    assert.deepEqual(addressesOf(answer), ['192.0.2.77'])
    assert.deepEqual(asked(), ['udp', 'tcp', 'tcp'])
  },
)

testSockets('Upstream asks over TCP at most twice after a mismatch (A13)', async (net) => {
  const server = await net.serve()
  const time = new FakeClock()
  const forwarder = await net.forward([server], { clock: socketClock(time) })
  const client = await net.udpClient(forwarder)
  const overTcp = () => server.queries.filter((query) => query.transport === 'tcp').length
  server.behaviour = (query) => {
    if (query.transport === 'tcp') query.hangUp()
    else query.send(answerTo(query, { name: 'evil.test' }))
  }
  client.send(queryFor('spoofed.test', { id: 9 }))
  await until('both repetitions', () => overTcp() === 2)
  await until(
    'SERVFAIL',
    () => {
      if (client.received.length === 0) time.advance(1000)
      return client.received.length === 1
    },
    30_000,
    20,
  )
  assert.equal(rcodeOf(client.received[0]), 2)
  assert.equal(overTcp(), 2)
})

testSockets('Upstream counts a late answer as late, and no other late message', async (net) => {
  const server = await net.serve(silent)
  const time = new FakeClock()
  const forwarder = await net.forward([server], { clock: socketClock(time) })
  const client = await net.udpClient(forwarder)
  client.send(queryFor('slow.test', { id: 9 }))
  await until('the query', () => server.queries.length === 1)
  for (let i = 0; i < 20 && client.received.length === 0; i++) {
    time.advance(1000)
    await sleep(20)
  }
  await until('SERVFAIL', () => client.received.length === 1)
  const [query] = server.queries
  assert.ok(query !== undefined)
  const { counters } = forwarder.upstream
  query.send(edit(answerTo(query), [[2, 0x01]]))
  await until('a message without QR', () => counters.unexpected === 1)
  assert.equal(counters.late, 0)
  query.send(answerTo(query))
  await until('the answer', () => counters.late === 1)
  assert.deepEqual([counters.unexpected, client.received.length], [1, 1])
})

testSockets(
  'Upstream accepts nothing of a flood of ids from another address or of wrong ids (A1, A3)',
  async (net) => {
    const server = await net.serve(silent)
    const forwarder = await net.forward([server])
    const client = await net.udpClient(forwarder)
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
    server.behaviour = (each) => each.send(answerTo(each))
    for (const each of server.queries) each.send(answerTo(each))
    await client.atLeast(1)
    assert.deepEqual(addressesOf(client.received[0]), ['192.0.2.1'])
    stranger.close()
  },
)

testSockets(
  'Upstream gives each client its own id, name case and TTL in any order of answers (A10, F3)',
  async (net) => {
    const server = await net.serve(silent)
    const held: SeenQuery[] = []
    server.behaviour = (query) => held.push(query)
    const forwarder = await net.forward([server])
    const names = ['same.test', 'SAME.test', 'sAmE.test', 'other.test', 'same.test']
    const port = await freePort()
    const clients: UdpClient[] = []
    for (let i = 0; i < 10; i++) {
      const client = await net.udpClient(forwarder, `127.0.0.${10 + i}`, port)
      clients.push(client)
      client.send(queryFor(names[i % names.length] ?? '', { id: 4711 }))
      await until('the query', () => held.length === i + 1)
    }
    // Each client gets the answer to its own query (F3).
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
  },
)
