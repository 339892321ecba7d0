// Late answers against a plain map, which forgets nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LateAnswers } from '../../../src/proxy/upstream/late-answers.ts'

test('LateAnswers tells the time of what was expected, once, and of nothing else', () => {
  const entry = fc.record({ socket: fc.nat(65_535), id: fc.nat(65_535), take: fc.boolean() })
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 100 }), (entries) => {
      const late = new LateAnswers()
      const model = new Map<string, number>()
      for (const [i, { socket, id, take }] of entries.entries()) {
        const key = `${socket} ${id}`
        if (!take) {
          late.expect(socket, id, i)
          model.set(key, i)
          continue
        }
        const sentAt = late.take(socket, id)
        assert.ok(sentAt < 0 || sentAt === model.get(key))
        model.delete(key)
      }
      let lost = 0
      for (const [key, sentAt] of model) {
        const [socket = 0, id = 0] = key.split(' ').map(Number)
        const told = late.take(socket, id)
        if (told < 0) lost++
        else assert.equal(told, sentAt)
        assert.ok(late.take(socket, id) < 0, 'once')
      }
      assert.ok(lost < 20, `${lost} lost`)
    }),
  )
})
