// The bounds on queries in flight, and the results at them.

import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { test } from 'node:test'
import { endpointId, generation } from '../../../src/core/ids.ts'
import { MessageView } from '../../../src/dns/message-view.ts'
import { QueryView } from '../../../src/dns/query.ts'
import { MessageBatch } from '../../../src/proxy/messages/batch.ts'
import { CLIENT_FULL, InFlightTable, TABLE_FULL } from '../../../src/proxy/messages/in-flight.ts'
import { SlotView } from '../../../src/proxy/messages/slot-view.ts'
import { systemRandom } from '../../../src/core/random.ts'
import { DEFAULT_UPSTREAM_LIMITS, Upstream } from '../../../src/proxy/upstream/upstream.ts'
import { until } from '../../support/peers/client.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { nativeIsLacking, openDatagrams, openStreams } from '../../support/open-sockets.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { answering, FakeUpstream, queryFor } from '../../support/peers/upstream.ts'
import { addDatagram } from '../../support/datagram.ts'

const PORT = 4000

/** A batch with one query of the client with this number. */
function batchOf(batch: MessageBatch, client: number, octets: Uint8Array): MessageBatch {
  batch.clear()
  const address = new Uint8Array(16)
  new DataView(address.buffer).setUint32(0, 0x0a000000 + client)
  addDatagram(batch, { channel: 0, family: 4, peer: address, port: PORT }, octets)
  return batch
}

function take(table: InFlightTable, client: number, octets: Uint8Array): number {
  const batch = batchOf(new MessageBatch({ stride: 65535, capacity: 1 }), client, octets)
  const view = new QueryView()
  const message = batch.view(0, new MessageView())
  assert.equal(view.read(message.octets, message.offset, message.length), 'ok')
  return table.take(batch, 0, view, endpointId(3), generation(2))
}

/** A query of more than `size` octets: EDNS padding (RFC 7830). */
function longQuery(name: string, size: number): Buffer {
  const octets = queryFor(name, { udpSize: 1232 })
  const end = octets.length
  const long = Buffer.concat([octets, Buffer.alloc(4 + size)])
  long.writeUInt16BE(4 + size, end - 2)
  long.writeUInt16BE(12, end)
  long.writeUInt16BE(size, end + 2)
  return long
}

test('InFlightTable keeps each query, short and long, while others are added and removed', () => {
  const table = new InFlightTable({ capacity: 4, perClient: 4 })
  const view = new SlotView()
  const first = take(table, 1, queryFor('Kept.test', { id: 7, udpSize: 1400 }))
  const long = take(table, 2, longQuery('long.test', 3000))
  for (let i = 0; i < 10; i++) {
    const other = take(table, 3, longQuery(`other-${i}.test`, 600 * (i % 2)))
    assert.ok(other !== first && other !== long)
    table.release(other)
  }
  assert.deepEqual(
    Buffer.from(table.octets(first)).subarray(
      table.offset(first),
      table.offset(first) + table.length(first),
    ),
    queryFor('Kept.test', { id: 7, udpSize: 1400 }),
  )
  assert.equal(table.length(long), longQuery('long.test', 3000).length)
  assert.deepEqual(
    Buffer.from(table.octets(long).subarray(0, table.length(long))),
    longQuery('long.test', 3000),
  )
  view.read(table, first)
  assert.equal(Buffer.from(view.name.subarray(0, view.nameLength)).toString(), '\x04kept\x04test\0')
  assert.equal(table.udpSizes[first], 1400)
  assert.equal(table.endpoints[first], 3)
  assert.equal(table.clientIds[first], 7)
})

test('InFlightTable names the bound that refuses a query, in all and per client', () => {
  const table = new InFlightTable({ capacity: 5, perClient: 2 })
  const query = queryFor('a.test')
  const slots = [take(table, 1, query), take(table, 1, query)]
  assert.equal(take(table, 1, query), CLIENT_FULL)
  slots.push(take(table, 2, query), take(table, 3, query), take(table, 4, query))
  assert.equal(take(table, 5, query), TABLE_FULL)
  assert.equal(new Set(slots).size, 5)
  table.release(slots[0] ?? -1)
  assert.throws(() => table.release(slots[0] ?? -1), /released once/)
  assert.equal(take(table, 1, query), slots[0])
})

test('InFlightTable keeps room for clients with few queries when others fill it (A32)', () => {
  const table = new InFlightTable({ capacity: 1600, perClient: 1000 })
  const batch = new MessageBatch()
  const query = queryFor('a.test')
  const counts = new Map<number, number>()
  for (let i = 0; i < 2400; i++) {
    const client = i % 20
    if (take(table, client, query) >= 0) counts.set(client, (counts.get(client) ?? 0) + 1)
  }
  assert.ok(table.count < 1600, 'twenty flooding clients do not fill it')
  const free = 1600 - table.count
  for (const [client, count] of counts) assert.ok(count >= free, `${client} got ${count}`)
  assert.equal(take(table, 1, query), TABLE_FULL)
  assert.ok(
    !table.isClientFull(batchOf(batch, 99, query), 0) &&
      table.isClientFull(batchOf(batch, 1, query), 0),
  )
  let late = 0
  while (take(table, 99, query) >= 0) late++
  assert.ok(late >= Math.floor(free / 2), `another still gets ${late} of ${free}`)
})

test('InFlightTable bounds the octets of long queries', () => {
  const table = new InFlightTable({ capacity: 1000, perClient: 1000 })
  const query = longQuery('a.test', 60_000)
  const slots: number[] = []
  for (let slot = take(table, 1, query); slot >= 0; slot = take(table, 1, query)) slots.push(slot)
  assert.ok(slots.length > 200 && slots.length < 290, `${slots.length} of 60,000 octets`)
  table.release(slots[0] ?? -1)
  assert.ok(take(table, 1, query) >= 0)
})

const skip = nativeIsLacking()

test(
  'Upstream refuses with a named result at 65,536 queries in flight, and recovers (A11)',
  { skip },
  async () => {
    const hole = createSocket({ type: 'udp4' })
    await new Promise<void>((resolve) => hole.bind(0, '127.0.0.1', resolve))
    const time = new FakeClock()
    const clock = socketClock(time)
    const streams = openStreams(clock)
    const datagrams = openDatagrams(clock)
    const failed: number[] = []
    const ids = new Set<number>()
    let answers = 0
    const before = process.memoryUsage().rss
    const upstream = new Upstream({
      clock,
      random: systemRandom,
      streams,
      datagrams,
      servers: [{ family: 4, address: '127.0.0.1', port: hole.address().port }],
      limits: { ...DEFAULT_UPSTREAM_LIMITS, attempts: 1 },
      onAnswers: () => assert.fail('the servers are silent'),
      onFailures: (failures) => {
        for (let i = 0; i < failures.count; i++) {
          const slot = failures.slots[i] ?? -1
          failed.push(slot)
          ids.add(upstream.inFlight.channels[slot] ?? -1)
          upstream.release(slot)
        }
      },
    })
    const batch = new MessageBatch()
    const view = new QueryView()
    const query = queryFor('a.test')
    let most = 0
    // The second attack can use the slots of the first again.
    for (const round of [1, 2]) {
      const results = { forwarded: 0, full: 0, 'client-full': 0 }
      for (let i = 0; i < 70_000; i++) {
        batchOf(batch, i % 500, query)
        batch.channels[0] = i
        const message = batch.view(0, new MessageView())
        view.read(message.octets, message.offset, message.length)
        results[upstream.forward(batch, 0, view, endpointId(1), generation(1))]++
      }
      const grown = process.memoryUsage().rss - before
      const { forwarded } = results
      assert.deepEqual(results, { forwarded, full: 70_000 - forwarded, 'client-full': 0 })
      // 500 clients have 131 each by then. The rest is kept for clients with fewer.
      assert.ok(forwarded > 65_536 - 140 && forwarded < 65_536, `${forwarded} forwarded`)
      assert.ok(round === 1 || forwarded === most, `${forwarded} after ${most}`)
      most = forwarded
      assert.ok(grown < 160 << 20, `${grown >> 20} MiB`)
      // Every query ends at most 5 s after the last one.
      time.advance(5000)
      await until('all to fail', () => failed.length === forwarded)
      assert.equal(new Set(failed.splice(0)).size, forwarded)
      assert.equal(ids.size, forwarded, 'each slot has its own query')
      ids.clear()
      assert.equal(upstream.inFlight.count, 0)
    }
    upstream.stop()
    datagrams.stop()
    hole.close()

    const server = await FakeUpstream.start(answering)
    const others = openDatagrams(clock)
    const next = new Upstream({
      clock,
      random: systemRandom,
      streams,
      datagrams: others,
      servers: [server.address],
      limits: {
        ...DEFAULT_UPSTREAM_LIMITS,
        inFlight: 100,
        inFlightPerClient: 10,
        timeout: 200,
        attempts: 1,
      },
      onAnswers: (batchOfAnswers) => {
        for (let i = 0; i < batchOfAnswers.count; i++) next.release(batchOfAnswers.slots[i] ?? -1)
        answers += batchOfAnswers.count
      },
      onFailures: () => assert.fail('all queries are answered'),
    })
    for (let round = 1; round <= 5; round++) {
      for (let i = 0; i < 15; i++) {
        batchOf(batch, 1, query)
        const result = next.forward(batch, 0, view, endpointId(1), generation(1))
        assert.equal(result, i < 10 ? 'forwarded' : 'client-full')
      }
      await until('the answers', () => answers === round * 10)
    }
    next.stop()
    others.stop()
    await server.stop()
  },
)
