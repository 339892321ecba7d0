// The wait table against a Map, with few sockets and ids so that buckets are shared.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WaitTable } from '../../../src/proxy/upstream/wait-table.ts'

const SLOTS = 6
const WIDTH = 3

test('WaitTable finds, lists newest first and counts as a plain map does', () => {
  const step = fc.record({
    slot: fc.nat(SLOTS - 1),
    attempt: fc.nat(WIDTH - 1),
    socket: fc.nat(3),
    id: fc.nat(9),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const table = new WaitTable(SLOTS, WIDTH)
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
          assert.equal(table.idOf(at), entry.id)
          assert.equal(table.sinceOf(at), 1000 + at)
        }
        for (let s = 0; s < 4; s++) {
          const listed: number[] = []
          for (let w = table.newestOf(s); w >= 0; w = table.olderThan(w)) listed.push(w)
          const expected = [...model].filter(([, entry]) => entry.socket === s).map(([at]) => at)
          assert.deepEqual(listed, expected.reverse())
          assert.equal(table.countOf(s), expected.length)
        }
      }
    }),
  )
})
