// Frames of several streams gathered in any order, and read back along the chain of each stream.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FRAME_WORDS } from '../../../src/native/tcp/tcp.ts'
import { FrameGather, NO_FRAME } from '../../../src/proxy/sockets/frame-gather.ts'

const STREAMS = 4

test('FrameGather keeps the frames of each stream in order, and has room until it is full', () => {
  const step = fc.record({
    stream: fc.nat(STREAMS - 1),
    length: fc.oneof(fc.integer({ min: 2, max: 300 }), fc.integer({ min: 2, max: 65_535 })),
    id: fc.nat(65_535),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const gather = new FrameGather()
      const heads = new Int32Array(STREAMS).fill(NO_FRAME)
      const lasts = new Int32Array(STREAMS).fill(NO_FRAME)
      const expected = Array.from({ length: STREAMS }, (): Buffer[] => [])
      for (const [i, { stream, length, id }] of steps.entries()) {
        const source = Buffer.alloc(length + 3, i)
        assert.ok(gather.hasRoom(length) || i > 15)
        if (!gather.hasRoom(length)) break
        const frame = gather.add(source, 3, length, id, lasts[stream] ?? NO_FRAME)
        if (heads[stream] === NO_FRAME) heads[stream] = frame
        lasts[stream] = frame
        const octets = Buffer.alloc(length + 2, i)
        octets.writeUInt16BE(length, 0)
        octets.writeUInt16BE(id, 2)
        expected[stream]?.push(octets)
      }
      for (const [stream, frames] of expected.entries()) {
        const chain = chainOf(gather, heads[stream] ?? NO_FRAME)
        assert.ok(Buffer.concat(chain).equals(Buffer.concat(frames)))
      }
    }),
    { numRuns: 60 },
  )
})

test('FrameGather is empty again after clear', () => {
  const gather = new FrameGather()
  const source = Buffer.alloc(65_535)
  let last = NO_FRAME
  for (let count = 0; gather.hasRoom(source.length); count++) {
    assert.ok(count < 100)
    last = gather.add(source, 0, source.length, 1, last)
  }
  gather.clear()
  assert.ok(gather.hasRoom(source.length))
  assert.equal(gather.add(source, 0, source.length, 1, NO_FRAME), 0)
})

/** The frames of a chain in the order in which the addon reads them. */
function chainOf({ frames, slab }: FrameGather, head: number): Uint8Array[] {
  const chain: Uint8Array[] = []
  for (let frame = head; frame !== NO_FRAME; frame = frames[frame * FRAME_WORDS + 2] ?? NO_FRAME) {
    const offset = frames[frame * FRAME_WORDS] ?? 0
    chain.push(slab.subarray(offset, offset + (frames[frame * FRAME_WORDS + 1] ?? 0)))
  }
  return chain
}
