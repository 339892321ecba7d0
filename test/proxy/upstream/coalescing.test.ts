// Which query follows which leader, compared with a plain list of leaders.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { endpointId, generation } from '../../../src/core/ids.ts'
import { QueryView } from '../../../src/dns/query.ts'
import { MessageBatch } from '../../../src/proxy/messages/batch.ts'
import { Coalescing, FOLLOWERS_MAX } from '../../../src/proxy/upstream/coalescing.ts'
import { InFlightTable } from '../../../src/proxy/messages/in-flight.ts'
import { queryFor } from '../../support/peers/upstream.ts'
import { MessageView } from '../../../src/dns/message-view.ts'
import { addDatagram } from '../../support/datagram.ts'

interface Ask {
  readonly client: number
  readonly endpoint: number
  readonly name: string
  readonly tcp: boolean
  readonly edns: boolean
  readonly asked: number
  readonly id: number
}

const FIRST: Ask = {
  client: 1,
  endpoint: 1,
  name: 'a.test',
  tcp: false,
  edns: false,
  asked: 1,
  id: 7,
}

function take(table: InFlightTable, ask: Ask): number {
  const batch = new MessageBatch({ capacity: 1 })
  const octets = queryFor(ask.name, { id: ask.id, ...(ask.edns ? { udpSize: 1232 } : {}) })
  const address = Uint8Array.from({ length: 16 }, (_, i) => (i === 3 ? ask.client : 0))
  if (ask.tcp) batch.addTcp(0, 4, address, 4000 + ask.id, MessageView.of(octets))
  else addDatagram(batch, { channel: 0, family: 4, peer: address, port: 4000 + ask.id }, octets)
  batch.askedAddresses[3] = ask.asked
  batch.askedPorts[0] = 53
  const view = new QueryView()
  const message = batch.view(0, new MessageView())
  assert.equal(view.read(message.octets, message.offset, message.length), 'ok')
  return table.take(batch, 0, view, endpointId(ask.endpoint), generation(1))
}

/** True if the second of two queries follows the first. */
function follows(first: Ask, second: Ask, byAsked = false): boolean {
  const table = new InFlightTable({ capacity: 4, perClient: 4 })
  const coalescing = new Coalescing(table, byAsked)
  assert.equal(coalescing.join(take(table, first)), false)
  return coalescing.join(take(table, second))
}

test('Coalescing joins equal queries of one client, and no others (P2, F3)', () => {
  const rows: readonly (readonly [Partial<Ask>, boolean, string])[] = [
    [{}, true, 'a retransmission'],
    [{ id: 8 }, true, 'another id and port'],
    [{ client: 2 }, false, 'another client [F3]'],
    [{ endpoint: 2 }, false, 'another endpoint on the same address'],
    [{ name: 'b.test' }, false, 'another name'],
    [{ name: 'A.test' }, false, 'the answer repeats the letters as asked'],
    [{ edns: true }, false, 'other options'],
    [{ tcp: true }, false, 'an answer over UDP can be cut'],
    [{ asked: 2 }, true, 'both queries go to the pool'],
  ]
  for (const [change, expected, reason] of rows) {
    assert.equal(follows(FIRST, { ...FIRST, ...change }), expected, reason)
  }
  const tcp = { ...FIRST, tcp: true }
  assert.equal(follows(tcp, FIRST), true, 'an answer over TCP is whole')
  assert.equal(follows(tcp, tcp), true)
  assert.equal(follows(FIRST, { ...FIRST, asked: 2 }, true), false, 'another server is asked')
  assert.equal(follows(FIRST, { ...FIRST }, true), true)
})

test('Coalescing bounds the followers of one leader', () => {
  const table = new InFlightTable({ capacity: 256, perClient: 256 })
  const coalescing = new Coalescing(table, false)
  const joined = Array.from({ length: 2 * (FOLLOWERS_MAX + 1) }, () =>
    coalescing.join(take(table, FIRST)),
  )
  assert.deepEqual(
    joined.flatMap((follower, i) => (follower ? [] : [i])),
    [0, FOLLOWERS_MAX + 1],
  )
})

test('Coalescing keeps the lists that a plain model keeps', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ name: fc.nat(2), client: fc.nat(2) }) },
    { weight: 2, arbitrary: fc.record({ end: fc.nat(9) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const table = new InFlightTable({ capacity: 128, perClient: 128 })
      const coalescing = new Coalescing(table, false)
      const leaders: { slot: number; key: string; followers: number[] }[] = []
      for (const one of steps) {
        if ('end' in one) {
          const [leader] = leaders.splice(one.end % Math.max(1, leaders.length), 1)
          if (leader === undefined) continue
          coalescing.end(leader.slot)
          coalescing.end(leader.slot)
          const listed: number[] = []
          for (
            let at = coalescing.followerOf(leader.slot);
            at >= 0;
            at = coalescing.followerOf(at)
          ) {
            listed.push(at)
          }
          assert.deepEqual(listed, leader.followers.toReversed())
          for (const slot of [leader.slot, ...listed]) table.release(slot)
        } else {
          const ask = { ...FIRST, name: `n${one.name}.test`, client: one.client + 1 }
          const slot = take(table, ask)
          const leader = leaders.find(({ key }) => key === `${ask.name} ${ask.client}`)
          assert.equal(coalescing.join(slot), leader !== undefined)
          if (leader !== undefined) leader.followers.push(slot)
          else leaders.push({ slot, key: `${ask.name} ${ask.client}`, followers: [] })
        }
      }
    }),
  )
})
