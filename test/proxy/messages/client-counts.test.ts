// ClientCounts compared with a Map, with addresses that collide in a small table.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ClientCounts } from '../../../src/proxy/messages/client-counts.ts'

const CAPACITY = 12
const LIMIT = 3

test('ClientCounts bounds each client like a plain map, and forgets clients at zero', () => {
  const step = fc.record({
    client: fc.nat(3),
    family: fc.constantFrom(4 as const, 6 as const),
    add: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const counts = new ClientCounts(CAPACITY)
      const entries = new Map<string, number[]>()
      let total = 0
      for (const { client, family, add } of steps) {
        const key = `${family}/${client}`
        const held = entries.get(key) ?? []
        const octets = new Uint8Array(20)
        octets[4] = client
        if (add && total < CAPACITY) {
          const entry = counts.add(family, octets, 2, LIMIT)
          assert.equal(entry < 0, held.length === LIMIT)
          if (entry < 0) continue
          for (const other of held) assert.equal(other, entry)
          entries.set(key, [...held, entry])
          total++
        } else if (!add && held.length > 0) {
          counts.remove(held[0] ?? 0)
          entries.set(key, held.slice(1))
          total--
        }
      }
    }),
  )
})
