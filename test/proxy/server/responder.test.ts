// Answers that are too long for the client, and answers that it gets whole.

import assert from 'node:assert/strict'
import dnsPacket from 'dns-packet'
import { testSockets } from '../../support/sockets.ts'
import { answerTo, queryFor } from '../../support/peers/upstream.ts'

testSockets(
  'Responder shortens an answer from TCP to the length that the UDP client accepts (P5, P6)',
  async (net) => {
    // A wrong id makes the proxy ask over TCP, where the answer can have any length.
    const forwarder = await net.forwardTo((query) => {
      const padding = Number(query.name.split('.')[0])
      if (query.transport === 'udp') query.send(answerTo(query, { id: query.id ^ 1 }))
      else query.send(answerTo(query, { padding }))
    })
    const client = await net.udpClient(forwarder)
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
  },
)

testSockets(
  'Responder passes TC and answers of up to 4,096 octets over UDP (P4, P6)',
  async (net) => {
    const forwarder = await net.forwardTo((query) => {
      query.send(answerTo(query, { padding: 3500, flags: query.name === 'tc.test' ? 0x0200 : 0 }))
    })
    const client = await net.udpClient(forwarder)
    for (const name of ['tc.test', 'big.test']) {
      const [answer] = await client.ask(queryFor(name, { udpSize: 4096 }))
      assert.ok((answer?.length ?? 0) > 3500)
      assert.equal(dnsPacket.decode(answer ?? Buffer.alloc(12)).flag_tc, name === 'tc.test')
    }
  },
)
