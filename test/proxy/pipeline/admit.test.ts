import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backlog } from '../../../src/proxy/pipeline/admit.ts'
import { MessageBatch } from '../../../src/proxy/messages/batch.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { LOOPBACK } from '../../support/peers/forwarder.ts'
import { addDatagram } from '../../support/datagram.ts'

function batchOf(messages: number): MessageBatch {
  const batch = new MessageBatch({ capacity: 2, stride: 512 })
  for (let i = 0; i < messages; i++) {
    addDatagram(batch, { channel: 0, family: 4, peer: LOOPBACK, port: 5353 }, new Uint8Array(20))
  }
  return batch
}

test('Backlog is behind when every batch was full for more than 50 ms, until one is not', () => {
  const clock = new FakeClock()
  const backlog = new Backlog(clock)
  const rows: readonly (readonly [messages: number, passed: number, behind: boolean])[] = [
    [2, 0, false],
    [2, 50, false],
    [2, 1, true],
    [2, 1000, true],
    [1, 1, false],
    [2, 60, false],
    [2, 40, false],
    [2, 11, true],
    [0, 1, false],
  ]
  for (const [i, [messages, passed, behind]] of rows.entries()) {
    clock.advance(passed)
    assert.equal(backlog.isBehind(batchOf(messages)), behind, `row ${i}`)
  }
})
