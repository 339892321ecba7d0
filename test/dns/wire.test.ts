import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  FAULT_BOUNDS,
  FAULT_LABEL,
  FAULT_LENGTH,
  FAULT_POINTER,
  POINTER_HOPS_MAX,
  readName,
  sameOctets,
  skipName,
  skipQuestion,
  u16,
  u32,
} from '../../src/dns/wire.ts'
import { guard } from '../support/guarded.ts'
import { concat, wireName } from '../support/messages.ts'

const HEADER = new Uint8Array(12)
const MARGIN = 5

/** Reads the name at `at` (octets from the message's start) with both functions, in a slab at an odd offset. */
function read(message: Uint8Array, at: number): { next: number; name: Uint8Array } {
  const slab = new Uint8Array(message.length + 2 * MARGIN).fill(0)
  slab.set(message, MARGIN)
  const out = new Uint8Array(255)
  const end = MARGIN + message.length
  const next = readName(slab, MARGIN, end, MARGIN + at, out)
  const skipped = skipName(slab, MARGIN, end, MARGIN + at)
  assert.equal(skipped < 0, next < 0, 'both functions agree on faults')
  if (next >= 0) assert.equal(skipped, next)
  return { next: next < 0 ? next : next - MARGIN, name: out }
}

const label63 = 'x'.repeat(63)

const good: readonly (readonly [
  reason: string,
  body: readonly number[],
  at: number,
  next: number,
  name: Uint8Array,
])[] = [
  ['the root is one octet', [0], 0, 1, wireName('')],
  ['a plain name', [...wireName('a.bc')], 0, 6, wireName('a.bc')],
  [
    'ASCII letters become lower case, others stay',
    [3, 0x41, 0xc4, 0x5a, 0],
    0,
    5,
    Uint8Array.of(3, 0x61, 0xc4, 0x7a, 0),
  ],
  ['a pointer to an earlier name', [1, 0x61, 0, 0xc0, 12], 3, 5, wireName('a')],
  ['labels, then a pointer', [1, 0x61, 0, 1, 0x62, 0xc0, 12], 3, 7, wireName('b.a')],
  ['a pointer to a pointer', [1, 0x61, 0, 0xc0, 12, 0xc0, 15], 5, 7, wireName('a')],
  ['a pointer into the middle of a name', [1, 0x61, 1, 0x62, 0, 0xc0, 14], 5, 7, wireName('b')],
  [
    'A9: dot, NUL, backslash, quote, space, newline, 0xff, ESC in labels',
    [8, 0x2e, 0, 0x5c, 0x22, 0x20, 0x0a, 0xff, 0x1b, 0],
    0,
    10,
    Uint8Array.of(8, 0x2e, 0, 0x5c, 0x22, 0x20, 0x0a, 0xff, 0x1b, 0),
  ],
  [
    '255 octets',
    [...wireName([label63, label63, label63, 'x'.repeat(61)])],
    0,
    255,
    wireName([label63, label63, label63, 'x'.repeat(61)]),
  ],
]

test('readName reads well-formed names', () => {
  for (const [reason, body, at, next, name] of good) {
    const result = read(concat(HEADER, Uint8Array.from(body)), 12 + at)
    assert.equal(result.next, 12 + next, reason)
    assert.deepEqual(result.name.subarray(0, name.length), name, reason)
  }
})

/** A name of `jumps` pointers, each to the one before. */
function pointers(jumps: number): number[] {
  const body = [0]
  for (let i = 0; i < jumps; i++)
    body.push(0xc0 | ((i === 0 ? 12 : 11 + 2 * i) >> 8), i === 0 ? 12 : (11 + 2 * i) & 255)
  return body
}

const bad: readonly (readonly [
  reason: string,
  body: readonly number[],
  at: number,
  fault: number,
])[] = [
  ['A17: a pointer to itself', [0xc0, 12], 0, FAULT_POINTER],
  ['A17: two steps in a ring', [0xc0, 14, 0xc0, 12], 0, FAULT_POINTER],
  ['A17: labels, then a pointer to their start', [1, 0x61, 0xc0, 12], 0, FAULT_POINTER],
  ['A17: a pointer into the labels before it', [3, 1, 0x61, 0, 0xc0, 13], 0, FAULT_POINTER],
  ['A17: a pointer forward', [0xc0, 14, 0], 0, FAULT_POINTER],
  ['A17: a pointer past the end', [0xc0, 200], 0, FAULT_POINTER],
  ['A17: a pointer into the header', [0, 0xc0, 11], 1, FAULT_POINTER],
  ['A17: a pointer to the first octet', [0, 0xc0, 0], 1, FAULT_POINTER],
  ['A17: a ring that is entered backwards', [1, 0x61, 0xc0, 12, 0xc0, 12], 4, FAULT_POINTER],
  [
    'one jump more than allowed',
    pointers(POINTER_HOPS_MAX + 1),
    2 * POINTER_HOPS_MAX + 1,
    FAULT_POINTER,
  ],
  ['half a pointer at the end', [0, 0xc0], 1, FAULT_BOUNDS],
  ['label type 01', [0x41, 0x61, 0], 0, FAULT_LABEL],
  ['label type 10', [0x80, 0x61, 0], 0, FAULT_LABEL],
  ['no octet at all', [], 0, FAULT_BOUNDS],
  ['a label past the end', [2, 0x61], 0, FAULT_BOUNDS],
  ['no final zero', [1, 0x61], 0, FAULT_BOUNDS],
  [
    '255 octets before its end',
    [...wireName([label63, label63, label63, 'x'.repeat(62)]).subarray(0, -1)],
    0,
    FAULT_LENGTH,
  ],
  ['256 octets', [...wireName([label63, label63, label63, 'x'.repeat(62)])], 0, FAULT_LENGTH],
  [
    '256 octets by a pointer',
    [...wireName([label63, label63, label63]), 63, ...new Uint8Array(63).fill(0x61), 0xc0, 12],
    193,
    FAULT_LENGTH,
  ],
]

test('readName refuses what is not a name', () => {
  for (const [reason, body, at, fault] of bad) {
    assert.equal(read(concat(HEADER, Uint8Array.from(body)), 12 + at).next, fault, reason)
  }
})

test('skipQuestion needs type and class after the name', () => {
  const whole = concat(HEADER, wireName('a.bc'), Uint8Array.of(0, 1, 0, 1))
  for (let cut = 0; cut <= 4; cut++) {
    const end = whole.length - cut
    const expected = cut === 0 ? whole.length : FAULT_BOUNDS
    assert.equal(skipQuestion(whole, 0, end, 12), expected, `${cut} octets are missing`)
  }
})

test('readName follows as many pointers as are allowed', () => {
  const body = Uint8Array.from(pointers(POINTER_HOPS_MAX))
  assert.equal(read(concat(HEADER, body), 12 + 2 * POINTER_HOPS_MAX - 1).next, 12 + body.length)
})

test('readName and skipName never read outside the message, whatever it holds', () => {
  // Small octets and pointers to near places are frequent, so that names are long.
  const octet = fc.oneof(
    fc.nat(5),
    fc.constant(0xc0),
    fc.integer({ min: 10, max: 40 }),
    fc.nat(255),
  )
  fc.assert(
    fc.property(
      fc.uint8Array({ min: 0, max: 255, maxLength: 40, size: 'max' }),
      fc.array(octet, { maxLength: 60, size: 'max' }),
      fc.nat(80),
      (rubbish, made, at) => {
        for (const message of [concat(HEADER, Uint8Array.from(made)), rubbish]) {
          const { buf, offset, length, outside } = guard(message)
          const first = offset + Math.min(at, length)
          const next = readName(buf, offset, offset + length, first, new Uint8Array(255))
          const skipped = skipName(buf, offset, offset + length, first)
          assert.equal(skipped < 0 ? -1 : skipped, next < 0 ? -1 : next)
          assert.deepEqual(outside, [])
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('u16 and u32 read network order without sign', () => {
  const octets = Uint8Array.of(0xff, 0xfe, 0xfd, 0xfc)
  assert.equal(u16(octets, 0), 0xfffe)
  assert.equal(u32(octets, 0), 0xfffefdfc)
})

test('sameOctets compares runs at different places', () => {
  assert.equal(sameOctets(Uint8Array.of(9, 1, 2), 1, Uint8Array.of(1, 2, 3), 0, 2), true)
  assert.equal(sameOctets(Uint8Array.of(9, 1, 2), 1, Uint8Array.of(1, 3, 3), 0, 2), false)
})
