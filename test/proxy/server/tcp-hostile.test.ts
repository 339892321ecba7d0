// Many TCP clients cut, stop, reset and flood at once. No answer is lost or sent to another client, no slot leaks, and a quiet client is
// served meanwhile.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { LOCAL } from '../../../src/dns/codes.ts'
import { until } from '../../support/peers/client.ts'
import { Random } from '../../support/models/random.ts'
import { testSockets } from '../../support/sockets.ts'
import { idsOf, queries } from '../../support/transport.ts'
import { answering, answerTo, frame, queryFor, silent } from '../../support/peers/upstream.ts'

const CLIENTS = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'] as const

testSockets('TcpServer frees every connection of a storm of resets (T7)', async (net) => {
  const random = new Random(7)
  const forwarder = await net.forwardTo(answering)
  const { counters } = forwarder.tcp
  // More rounds than there are slots, so a leaked slot is noticed.
  const rounds = 40
  for (let round = 0; round < rounds; round++) {
    const clients = await Promise.all(
      Array.from({ length: 16 }, () => net.tcpClient(forwarder, random.pick(CLIENTS))),
    )
    await until('all to be accepted', () => counters.accepted === (round + 1) * 16)
    for (const { socket } of clients) {
      const octets = Buffer.concat(queries(1 + random.below(4)).map(frame))
      socket.write(octets.subarray(0, octets.length - random.below(octets.length)))
      if (random.oneIn(2)) await turn()
      socket.resetAndDestroy()
    }
  }
  await until('nothing to be open', () => counters.open === 0)
  await until('nothing to be asked', () => forwarder.upstream.inFlight.count === 0)
  const clients = await Promise.all(CLIENTS.map((address) => net.tcpClient(forwarder, address)))
  for (const client of clients) await client.ask(queryFor('a.test'))
})

testSockets('TcpServer answers each query once wherever octets are cut', async (net) => {
  const random = new Random(11)
  const held: (() => void)[] = []
  const forwarder = await net.forwardTo(
    (query) => {
      const send = (): void => query.send(answerTo(query, { padding: random.pick([0, 0, 3000]) }))
      if (random.oneIn(3)) held.push(send)
      else send()
      while (held.length > 20) held.splice(random.below(held.length), 1)[0]?.()
    },
    { tcp: { queriesPerConnection: 8 } },
  )
  const count = 60
  const clients = await Promise.all(
    Array.from({ length: 12 }, () => net.tcpClient(forwarder, random.pick(CLIENTS))),
  )
  const writers = clients.map(async (client, i) => {
    const own = new Random(i + 1)
    const octets = Buffer.concat(queries(count).map(frame))
    for (let at = 0; at < octets.length;) {
      const next = at + 1 + own.below(own.oneIn(4) ? 600 : 40)
      client.socket.write(octets.subarray(at, next))
      at = next
      await turn()
    }
    if (own.oneIn(2)) client.socket.end()
  })
  await Promise.all(writers)
  const total = count * clients.length
  await until('all answers', () => {
    for (const send of held.splice(0)) send()
    return clients.reduce((sum, client) => sum + client.received.length, 0) >= total
  })
  for (const client of clients) {
    assert.deepEqual(new Set(idsOf(client.received)).size, count)
    assert.equal(client.received.length, count)
    for (const answer of client.received) assertName(answer)
  }
})

/** Checks that the answer is that to n<id>.test. */
function assertName(answer: Buffer): void {
  const label = `n${answer.readUInt16BE(0)}`
  assert.equal(answer.toString('latin1', 13, 13 + label.length), label)
}

testSockets('TcpServer serves a quiet client while others flood (A22)', async (net) => {
  const forwarder = await net.forwardTo(silent, { refuseAll: LOCAL.deniedRefused })
  const block = Buffer.concat(queries(1000).map(frame))
  const floods = await Promise.all(CLIENTS.map((address) => net.tcpClient(forwarder, address)))
  let flooding = true
  const running = floods.map(async ({ socket }) => {
    socket.removeAllListeners('data')
    socket.resume()
    while (flooding) if (!socket.write(block)) await once(socket, 'drain')
  })
  const quiet = await net.tcpClient(forwarder)
  await until('the flood', () => forwarder.tcp.counters.received > 10_000)
  const delays: number[] = []
  for (let i = 0; i < 20; i++) {
    const before = forwarder.tcp.counters.received
    await quiet.ask(queryFor('a.test'))
    delays.push(forwarder.tcp.counters.received - before)
  }
  flooding = false
  await Promise.all(running)
  // At most the queries of a flood that are in flight and in the reads of a turn, times a few turns: never its whole queue.
  const worst = Math.max(...delays)
  assert.ok(worst < 100_000, `${worst} queries of others were taken before one of the quiet client`)
})

test('assertName notices an answer to another query', () => {
  assertName(queryFor('n7.test', { id: 7 }))
  assert.throws(() => assertName(queryFor('n7.test', { id: 8 })))
})
