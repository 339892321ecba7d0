// Queries that wait for their endpoint, on fake time: when each continues, in which order, and what each bound does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageView } from '../../../src/dns/message-view.ts'
import { MessageBatch } from '../../../src/proxy/messages/batch.ts'
import {
  UnknownClients,
  WAITING_MAX,
  WAITING_OCTETS_MAX,
  WAITING_PER_CLIENT_MAX,
} from '../../../src/proxy/pipeline/unknown-clients.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { addDatagram } from '../../support/datagram.ts'

const WAIT_MS = 2000
const STRIDE = 512

class Bench {
  readonly clock = new FakeClock()
  /** Last octets of the client addresses that are known. */
  readonly known = new Set<number>()
  /** `client:first octet of the query` with the time since the start, in the order of their ends. */
  readonly ended: string[] = []
  readonly waiting: UnknownClients
  readonly #start = this.clock.now()

  constructor(waitMs = WAIT_MS) {
    this.waiting = new UnknownClients({
      clock: this.clock,
      waitMs,
      stride: STRIDE,
      isKnown: (clients, row) => this.known.has(clientOf(clients.addresses, row)),
      onEnd: (batch) => {
        for (let i = 0; i < batch.count; i++) {
          const client = clientOf(batch.addresses, i)
          const { octets, offset } = batch.view(i, new MessageView())
          const query = `${client}:${octets[offset]}`
          this.ended.push(`${query}@${this.clock.now() - this.#start}`)
          assert.equal(batch.interfaces[i], client, 'the interface of the query is kept')
        }
      },
    })
  }

  hold(client: number, query = 0, length = 20): string {
    const batch = new MessageBatch({ capacity: 1, stride: 4096 })
    const address = Uint8Array.of(10, 0, client >> 8, client & 255, ...new Uint8Array(12))
    addDatagram(
      batch,
      { channel: 1, family: 4, peer: address, port: 5353 },
      new Uint8Array(length).fill(query),
    )
    batch.interfaces[0] = client
    return this.waiting.hold(batch, 0)
  }

  know(...clients: readonly number[]): void {
    for (const client of clients) this.known.add(client)
    this.waiting.endpointsChanged()
    this.clock.advance(0)
  }
}

function clientOf(addresses: Uint8Array, row: number): number {
  return addresses[row * 16 + 2]! * 256 + addresses[row * 16 + 3]!
}

test('UnknownClients continues queries when their client becomes known, in the order of each client, and ends the rest at the limit', () => {
  const bench = new Bench()
  bench.hold(1, 10)
  bench.hold(2, 20)
  bench.clock.advance(500)
  bench.hold(1, 11)
  bench.hold(3, 30)
  bench.know(1)
  assert.deepEqual(bench.ended.splice(0), ['1:10@500', '1:11@500'])
  assert.equal(bench.waiting.waiting, 2)
  bench.clock.advance(WAIT_MS - 501)
  assert.deepEqual(bench.ended, [], 'a millisecond before the limit')
  bench.clock.advance(1)
  assert.deepEqual(bench.ended.splice(0), ['2:20@2000'], 'its own limit, not that of the next one')
  bench.clock.advance(500)
  assert.deepEqual(bench.ended.splice(0), ['3:30@2500'])
  assert.equal(bench.waiting.waiting, 0)
  const { held, becameKnown, timedOut } = bench.waiting.counters
  assert.deepEqual({ held, becameKnown, timedOut }, { held: 4, becameKnown: 2, timedOut: 2 })
  assert.equal(bench.waiting.times.sum, 500 + 0 + 2000 + 2000, 'each query with its own wait')
})

test('UnknownClients refuses queries over a bound, and holds queries again when there is room', () => {
  const bench = new Bench()
  for (let i = 0; i < WAITING_PER_CLIENT_MAX; i++) assert.equal(bench.hold(1), 'held')
  assert.equal(bench.hold(1), 'full', 'one client has reached its share')
  assert.equal(bench.hold(2), 'held', 'another client has its own share')
  assert.equal(bench.hold(3, 0, WAITING_OCTETS_MAX), 'held')
  assert.equal(bench.hold(3, 0, WAITING_OCTETS_MAX + 1), 'full', 'too long to keep')
  for (let client = 4; bench.waiting.waiting < WAITING_MAX; client++) bench.hold(client)
  assert.equal(bench.hold(9999), 'full', 'the bound of all clients')
  const { refusedFull, refusedClientFull, refusedLong } = bench.waiting.counters
  assert.deepEqual([refusedFull, refusedClientFull, refusedLong], [1, 1, 1])
  bench.clock.advance(WAIT_MS + 100)
  assert.equal(bench.ended.length, WAITING_MAX, 'every query ends')
  const clients = new Set(bench.ended.map((text) => text.split(':')[0]))
  assert.equal(clients.size, WAITING_MAX - WAITING_PER_CLIENT_MAX + 1)
  for (let i = 0; i < WAITING_PER_CLIENT_MAX; i++) assert.equal(bench.hold(1), 'held')
  bench.know(1)
  assert.equal(bench.waiting.waiting, 0)
})

test('UnknownClients finds every query whose client became known, however many wait', () => {
  const bench = new Bench()
  for (let client = 0; client < WAITING_MAX; client++) assert.equal(bench.hold(client), 'held')
  bench.know(...Array.from({ length: WAITING_MAX }, (_, client) => client))
  assert.equal(bench.ended.length, WAITING_MAX)
  assert.equal(new Set(bench.ended).size, WAITING_MAX, 'each once')
  bench.clock.advance(WAIT_MS)
  assert.equal(bench.ended.length, WAITING_MAX, 'and not again at the limit')
})

test('UnknownClients holds nothing without a wait, and ends nothing after stop', () => {
  assert.equal(new Bench(0).hold(1), 'no-wait')
  const bench = new Bench()
  bench.hold(1)
  bench.waiting.stop()
  bench.clock.advance(WAIT_MS)
  bench.know(1)
  assert.deepEqual(bench.ended, [])
})
