// Frames as the peer reads them, and octets that do not change after they were queued.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FrameReader } from '../../../src/dns/framing.ts'
import { FrameWriter } from '../../../src/proxy/sockets/tcp-portable.ts'

test('FrameWriter writes what FrameReader reads, and changes no queued octets', () => {
  const step = fc.oneof(
    fc.record({ length: fc.integer({ min: 2, max: 400 }), id: fc.nat(65535) }),
    fc.record({ length: fc.integer({ min: 2, max: 65535 }), id: fc.nat(65535) }),
    fc.constant('take' as const),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const writer = new FrameWriter()
      const expected: Buffer[] = []
      const taken: Buffer[] = []
      let pending = 0
      for (const [i, one] of steps.entries()) {
        if (one === 'take') {
          const octets = writer.take()
          assert.equal(octets?.length ?? 0, pending)
          if (octets !== undefined) taken.push(octets)
          pending = 0
        } else {
          const source = Buffer.alloc(one.length + 3, i)
          writer.add(source, 3, one.length, one.id)
          const message = Buffer.alloc(one.length, i)
          message.writeUInt16BE(one.id, 0)
          expected.push(message)
          pending += 2 + one.length
        }
        assert.equal(writer.pending, pending)
      }
      const last = writer.take()
      if (last !== undefined) taken.push(last)
      const reader = new FrameReader()
      const read: Buffer[] = []
      for (const chunk of taken) {
        reader.push(chunk)
        while (reader.next()) {
          read.push(
            Buffer.from(reader.buffer.subarray(reader.offset, reader.offset + reader.length)),
          )
        }
      }
      assert.equal(reader.pending, 0)
      assert.deepEqual(read, expected)
    }),
    { numRuns: 60 },
  )
})
