// Waits compared with a Map, with few sockets and ids so that buckets are shared; late answers compared with a map that keeps everything.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { InFlightTable } from '../../../src/proxy/messages/in-flight.ts'
import { RandomPool, systemRandom } from '../../../src/core/random.ts'
import { SocketNumbers } from '../../../src/proxy/upstream/upstream-socket.ts'
import { LateAnswers, Waits } from '../../../src/proxy/upstream/waits.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const SLOTS = 6
const WIDTH = 3

function mkWaits(): Waits {
  return new Waits({
    clock: new FakeClock(),
    random: new RandomPool(systemRandom),
    inFlight: new InFlightTable({ capacity: SLOTS, perClient: SLOTS }),
    numbers: new SocketNumbers(),
    timeout: 4000,
    attempts: WIDTH - 1,
  })
}

test('Waits finds, lists newest first and counts like a plain map', () => {
  const step = fc.record({
    slot: fc.nat(SLOTS - 1),
    attempt: fc.nat(WIDTH - 1),
    socket: fc.nat(3),
    id: fc.nat(9),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const table = mkWaits()
      const model = new Map<number, { socket: number; id: number }>()
      for (const { slot, attempt, socket, id } of steps) {
        const wait = table.at(slot, attempt)
        assert.equal(table.slotOf(wait), slot)
        const known = model.get(wait)
        if (known !== undefined) {
          table.remove(wait)
          model.delete(wait)
          assert.equal(table.find(known.socket, known.id), -1)
        } else if (table.find(socket, id) < 0) {
          table.add(wait, socket, id, 1000 + wait)
          model.set(wait, { socket, id })
        }
        for (const [at, entry] of model) {
          assert.equal(table.find(entry.socket, entry.id), at)
          assert.equal(table.sinceOf(at), 1000 + at)
        }
        for (let s = 0; s < 4; s++) {
          const expected = [...model].filter(([, entry]) => entry.socket === s).map(([at]) => at)
          assert.deepEqual(table.listOf(s), expected.reverse())
          assert.equal(table.countOf(s), expected.length)
        }
      }
    }),
  )
})

test('LateAnswers returns the time of an expected answer, once, and of no other', () => {
  const entry = fc.record({ socket: fc.nat(65_535), id: fc.nat(65_535), take: fc.boolean() })
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 100 }), (entries) => {
      const late = new LateAnswers(200)
      const model = new Map<string, number>()
      for (const [i, { socket, id, take }] of entries.entries()) {
        const key = `${socket} ${id}`
        if (!take) {
          late.expect(socket, id, i)
          model.set(key, i)
          continue
        }
        const sentAt = late.take(socket, id, i)
        assert.ok(sentAt < 0 || sentAt === model.get(key))
        model.delete(key)
      }
      let lost = 0
      for (const [key, sentAt] of model) {
        const [socket = 0, id = 0] = key.split(' ').map(Number)
        const told = late.take(socket, id, 100)
        if (told < 0) lost++
        else assert.equal(told, sentAt)
        assert.ok(late.take(socket, id, 100) < 0, 'once')
      }
      assert.ok(lost < 20, `${lost} lost`)
    }),
  )
})

test('LateAnswers forgets an answer after its lifetime', () => {
  const late = new LateAnswers(8000)
  for (const [age, isLate, reason] of [
    [8000, true, 'the end of the lifetime'],
    [8001, false, 'after it: a guess'],
  ] as const) {
    late.expect(1, 2, 500)
    assert.equal(late.take(1, 2, 500 + age) >= 0, isLate, reason)
  }
})
