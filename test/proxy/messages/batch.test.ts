// What a batch reports of messages of every size. A cleared batch shows nothing of its last use.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageBatch } from '../../../src/proxy/messages/batch.ts'
import { OVER_TCP, OVER_UDP } from '../../../src/proxy/messages/client-columns.ts'
import { MessageView } from '../../../src/dns/message-view.ts'
import { addDatagram } from '../../support/datagram.ts'

const STRIDE = 64
const PEER = Uint8Array.from({ length: 16 }, (_, i) => i)
const SENDER = { channel: 9, family: 6, peer: PEER, port: 53 } as const

function messageOf(batch: MessageBatch, index: number): Buffer {
  return Buffer.from(batch.view(index, new MessageView()).copy())
}

test('MessageBatch keeps cut datagrams and whole long frames, and is empty when cleared', () => {
  const batch = new MessageBatch({ capacity: 4, stride: STRIDE })
  const rows = [
    { size: 0, cut: false },
    { size: STRIDE, cut: false },
    { size: STRIDE + 1, cut: true },
    { size: 500, cut: true },
  ]
  for (const order of [rows, rows.toReversed(), rows]) {
    for (const { size } of order) addDatagram(batch, SENDER, Buffer.alloc(size, size))
    assert.ok(batch.full)
    for (const [i, { size, cut }] of order.entries()) {
      assert.equal(batch.oversized[i], cut ? 1 : 0, `${size} octets`)
      assert.deepEqual(messageOf(batch, i), Buffer.alloc(Math.min(size, STRIDE), size))
      assert.equal(batch.transports[i], OVER_UDP)
    }
    batch.clear()
    const source = Buffer.concat([
      Buffer.alloc(5),
      ...rows.map(({ size }) => Buffer.alloc(size, size)),
    ])
    let at = 5
    for (const { size } of rows) {
      batch.addTcp(3, 4, PEER, 1024, new MessageView().set(source, at, size))
      at += size
    }
    source.fill(0xff)
    for (const [i, { size }] of rows.entries()) {
      assert.deepEqual(messageOf(batch, i), Buffer.alloc(size, size))
      assert.deepEqual(
        [batch.oversized[i], batch.transports[i], batch.channels[i]],
        [0, OVER_TCP, 3],
      )
      assert.deepEqual(batch.addresses.subarray(i * 16, i * 16 + 16), PEER)
      assert.deepEqual([batch.families[i], batch.ports[i]], [4, 1024])
    }
    batch.clear()
    assert.equal(batch.count, 0)
  }
})
