// Clients over UDP on loopback: batches, what gets no answer, and bounds on size.

import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import dnsPacket from 'dns-packet'
import { systemClock } from '../../src/core/clock.ts'
import { UnavailableError } from '../../src/core/errors.ts'
import { AddressBook, isAnswerable } from '../../src/proxy/address-book.ts'
import type { MessageBatch } from '../../src/proxy/batch.ts'
import { BatchCollector } from '../../src/proxy/collector.ts'
import { UdpListener } from '../../src/proxy/udp-portable.ts'
import { UdpClient, until } from '../support/client.ts'
import { Forwarder, type ForwarderOptions } from '../support/forwarder.ts'
import { answering, answerTo, FakeUpstream, queryFor, type Behaviour } from '../support/upstream.ts'

const FORMERR = 1
const opened: { stop(): Promise<void> | void }[] = []

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.stop()
})

async function forward(
  behaviour: Behaviour = answering,
  options: Omit<ForwarderOptions, 'servers'> = {},
): Promise<Forwarder> {
  const server = await FakeUpstream.start(behaviour)
  opened.push(server)
  const forwarder = await Forwarder.start({ servers: [server.address], ...options })
  opened.push(forwarder)
  return forwarder
}

async function clientOf(forwarder: Forwarder, address?: string): Promise<UdpClient> {
  const client = await UdpClient.open(forwarder.udpPort, address)
  opened.push({ stop: () => client.close() })
  return client
}

test('UdpListener gathers what came in one turn into one batch', async () => {
  const forwarder = await forward()
  const client = await clientOf(forwarder)
  await client.ask(...Array.from({ length: 300 }, (_, i) => queryFor('a.test', { id: i })))
  const { batches } = forwarder
  assert.equal(
    batches.reduce((sum, size) => sum + size),
    300,
  )
  assert.ok(Math.max(...batches) > 8, `batches of ${batches.join(', ')}`)
})

test('UdpListener says nothing to replies and scraps, once to anything else (A23)', async () => {
  const forwarder = await forward()
  const client = await clientOf(forwarder)
  const query = queryFor('a.test', { id: 8 })
  for (let length = 0; length < 12; length++) client.send(query.subarray(0, length))
  const reply = Buffer.from(query)
  reply.writeUInt8(0x81, 2)
  client.send(reply)
  client.send(query.subarray(0, 20))
  client.send(query)
  await client.atLeast(2)
  await sleep(20)
  assert.deepEqual(client.received.map((octets) => octets.readUInt8(3) & 15).sort(), [0, FORMERR])
})

test('UdpListener cuts and marks a datagram over 4,096 octets, which gets FORMERR', async () => {
  const forwarder = await forward()
  const client = await clientOf(forwarder)
  const query = queryFor('a.test', { id: 8 })
  const [answer] = await client.ask(Buffer.concat([query, Buffer.alloc(4097 - query.length)]))
  assert.equal((answer?.readUInt8(3) ?? 0) & 15, FORMERR)
  assert.equal(forwarder.udp.counters.oversized, 1)
})

test('UdpListener hands over peers, octets and channel of IPv4 and IPv6, at the bound of a batch too', async () => {
  for (const [family, address, type] of [
    [4, '127.0.0.1', 'udp4'],
    [6, '::1', 'udp6'],
  ] as const) {
    const seen: string[] = []
    const onBatch = (batch: MessageBatch) => {
      for (let i = 0; i < batch.count; i++) {
        const at = batch.offset(i)
        const text = Buffer.from(batch.octets(i).subarray(at, at + batch.length(i))).toString()
        const peer = Buffer.from(batch.addresses.subarray(i * 16, i * 16 + 16)).toString('hex')
        seen.push(`${batch.channels[i]} ${batch.families[i]} ${peer} ${text}`)
        listener.send(
          batch.addresses,
          i * 16,
          batch.ports[i] ?? 0,
          batch.octets(i),
          at,
          batch.length(i),
          0x4142,
        )
      }
    }
    const collector = new BatchCollector({ clock: systemClock, onBatch, batch: { capacity: 4 } })
    const book = new AddressBook()
    const listener = new UdpListener({ collector, book, channel: 7, family, address, port: 0 })
    listener.start()
    const socket = createSocket(type)
    const back: string[] = []
    socket.on('message', (octets) => back.push(octets.toString()))
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
    socket.close()
    listener.stop()
  }
})

test('UdpListener survives port unreachable from clients that have gone', async () => {
  const forwarder = await forward((query) => {
    setTimeout(() => query.send(answerTo(query)), 30)
  })
  for (let i = 0; i < 20; i++) {
    const client = await UdpClient.open(forwarder.udpPort)
    client.send(queryFor('a.test'))
    await sleep(1)
    client.close()
  }
  await until('the answers', () => forwarder.udp.counters.sent === 20)
  const client = await clientOf(forwarder)
  assert.equal((await client.ask(queryFor('a.test'))).length, 1)
})

test('UdpListener names port and remedy when it cannot listen', async () => {
  const forwarder = await forward()
  const { book, collector } = forwarder
  const common = { collector, book, channel: 1, family: 4 } as const
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
    const listener = new UdpListener({ ...common, address, port })
    assert.throws(
      () => listener.start(),
      (error) => error instanceof UnavailableError && message.test(error.message),
    )
  }
})

test('AddressBook tells hosts from broadcast, multicast and nobody, and keeps zones', () => {
  const book = new AddressBook()
  const rows = [
    ['192.0.2.1', true],
    ['223.255.255.255', true],
    ['224.0.0.1', false],
    ['239.1.1.1', false],
    ['255.255.255.255', false],
    ['0.0.0.0', false],
    ['240.0.0.1', true],
    ['2001:db8::1', true],
    ['::1', true],
    ['::', false],
    ['ff02::1', false],
    ['fe80::1%eth0', true],
  ] as const
  for (const [text, unicast] of rows) {
    const peer = book.read(text)
    assert.equal(peer?.unicast, unicast, text)
    assert.equal(peer && book.write(peer.family, peer.octets, 0), text)
    assert.equal(book.read(text), peer, 'known the second time')
    assert.equal(peer && isAnswerable(peer, 53), unicast)
    assert.equal(peer && isAnswerable(peer, 0), false, 'port 0')
  }
  assert.equal(book.read('no address'), undefined)
})

test('Responder shortens an answer that came over TCP to what the UDP client takes (P5, P6)', async () => {
  // A wrong id sends the proxy to TCP, where the answer may be of any length.
  const forwarder = await forward((query) => {
    const padding = Number(query.name.split('.')[0])
    if (query.transport === 'udp') query.send(answerTo(query, { id: query.id ^ 1 }))
    else query.send(answerTo(query, { padding }))
  })
  const client = await clientOf(forwarder)
  const rows = [
    { padding: 200, udpSize: undefined, whole: true },
    { padding: 600, udpSize: undefined, whole: false },
    { padding: 600, udpSize: 1232, whole: true },
    { padding: 3000, udpSize: 1232, whole: false },
    { padding: 3000, udpSize: 4096, whole: true },
    { padding: 9000, udpSize: 65535, whole: false },
  ]
  for (const { padding, udpSize, whole } of rows) {
    const shape = udpSize === undefined ? {} : { udpSize }
    const [answer] = await client.ask(queryFor(`${padding}.test`, { id: padding, ...shape }))
    const packet = dnsPacket.decode(answer ?? Buffer.alloc(12))
    assert.equal(packet.flag_tc, !whole, `${padding} octets to a client that takes ${udpSize}`)
    assert.equal((packet.answers?.length ?? 0) > 0, whole)
    assert.equal(packet.id, padding)
    assert.equal(packet.questions?.[0]?.name, `${padding}.test`)
    if (!whole) assert.equal(packet.additionals?.length, udpSize === undefined ? 0 : 1)
  }
  assert.equal(forwarder.responder.counters.truncated, 3)
})

test('Responder passes TC and answers of up to 4,096 octets over UDP (P4, P6)', async () => {
  const forwarder = await forward((query) => {
    query.send(answerTo(query, { padding: 3500, flags: query.name === 'tc.test' ? 0x0200 : 0 }))
  })
  const client = await clientOf(forwarder)
  for (const name of ['tc.test', 'big.test']) {
    const [answer] = await client.ask(queryFor(name, { udpSize: 4096 }))
    assert.ok((answer?.length ?? 0) > 3500)
    assert.equal(dnsPacket.decode(answer ?? Buffer.alloc(12)).flag_tc, name === 'tc.test')
  }
})
