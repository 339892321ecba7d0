import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FrameReader, writeFrame } from '../../src/dns/framing.ts'
import { concat } from '../support/messages.ts'

function framed(message: Uint8Array): Uint8Array {
  const out = new Uint8Array(message.length + 5)
  assert.equal(writeFrame(out, 3, message, 0, message.length), message.length + 2)
  return out.subarray(3)
}

/** Pushes the chunks and reads up to `most` messages after each. */
function drain(reader: FrameReader, chunks: readonly Uint8Array[], most = Infinity): Uint8Array[] {
  const messages: Uint8Array[] = []
  for (const chunk of chunks) {
    const own = new Uint8Array(chunk.length + 5).fill(0xdd)
    own.set(chunk, 3)
    reader.push(own, 3, 3 + chunk.length)
    let taken = 0
    let dry = false
    while (taken < most && !dry) {
      if (reader.next())
        messages.push(reader.buffer.slice(reader.offset, reader.offset + reader.length))
      else dry = true
      taken++
    }
    // After false, or a hold, the owner can use the chunk again.
    if (!dry) reader.hold()
    own.fill(0xee)
  }
  return messages
}

function cut(stream: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (stream.length + 1)))].sort(
    (x, y) => x - y,
  )
  return [...ends, stream.length].map((end, i) => stream.subarray(ends[i - 1] ?? 0, end))
}

test('FrameReader: T4: gives the same messages for any split of the stream', () => {
  const message = fc.oneof(
    fc.uint8Array({ maxLength: 30, size: 'max' }),
    fc.nat(1500).map((n) => new Uint8Array(n).fill(n)),
  )
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.array(fc.nat(5000), { maxLength: 12, size: 'max' }),
      (messages, places) => {
        const chunks = cut(concat(...messages.map(framed)), places)
        const reader = new FrameReader()
        assert.deepEqual(drain(reader, chunks), messages)
        assert.equal(reader.pending, 0)
      },
    ),
    { numRuns: 500 },
  )
})

test('FrameReader: T4: takes octets one by one', () => {
  const messages = [
    new Uint8Array(12).fill(1),
    new Uint8Array(700).fill(2),
    new Uint8Array(0),
    new Uint8Array(1).fill(3),
  ]
  const stream = concat(...messages.map(framed))
  const chunks = Array.from(stream, (octet) => Uint8Array.of(octet))
  assert.deepEqual(drain(new FrameReader(), chunks), messages)
})

test('FrameReader returns the longest message, cut in two', () => {
  const message = new Uint8Array(65535).fill(7)
  const stream = framed(message)
  assert.deepEqual(
    drain(new FrameReader(), [stream.subarray(0, 40_000), stream.subarray(40_000)]),
    [message],
  )
})

test('FrameReader does not copy a message that lies completely in one chunk', () => {
  const reader = new FrameReader()
  const chunk = concat(framed(Uint8Array.of(1, 2, 3)), framed(Uint8Array.of(4)))
  reader.push(chunk)
  assert.equal(reader.next(), true)
  assert.deepEqual([reader.buffer === chunk, reader.offset, reader.length], [true, 2, 3])
  assert.equal(reader.next(), true)
  assert.deepEqual([reader.buffer === chunk, reader.offset, reader.length], [true, 7, 1])
  assert.equal(reader.next(), false)
})

test('FrameReader waits when its owner stops reading messages, and loses none', () => {
  const messages = Array.from({ length: 20 }, (_, i) => new Uint8Array(i).fill(i))
  const stream = concat(...messages.map(framed))
  const reader = new FrameReader()
  const some = drain(reader, cut(stream, [40, 90, 91]), 2)
  const rest: Uint8Array[] = []
  while (reader.next()) rest.push(reader.buffer.slice(reader.offset, reader.offset + reader.length))
  assert.equal(some.length, 8)
  assert.deepEqual([...some, ...rest], messages)
})

test('FrameReader counts the octets of an incomplete message', () => {
  const reader = new FrameReader()
  assert.equal(reader.pending, 0)
  drain(reader, [Uint8Array.of(0)])
  assert.equal(reader.pending, 1)
  drain(reader, [Uint8Array.of(9, 1, 2)])
  assert.equal(reader.pending, 4)
  assert.equal(drain(reader, [new Uint8Array(7)]).length, 1)
  assert.equal(reader.pending, 0)
})

test('writeFrame writes length and message side by side', () => {
  const out = new Uint8Array(8)
  assert.equal(writeFrame(out, 1, Uint8Array.of(9, 7, 8, 9), 1, 2), 4)
  assert.deepEqual([...out], [0, 0, 2, 7, 8, 0, 0, 0])
})
