// Messages of a take-over arrive unchanged over a real socket, whatever their length.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemClock } from '../../src/core/clock.ts'
import { Channel, type Message } from '../../src/handover/channel.ts'
import { decodeGiven, decodeQueries, encodeGiven, encodeQuery } from '../../src/handover/wire.ts'
import { isBuilt, loadPosix } from '../../src/native/native.ts'
import type { Fate, HandedQuery } from '../../src/proxy/handed.ts'
import { until } from '../support/peers/client.ts'

const skip = isBuilt('posix') ? false : 'the native part is not built'
const octets = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const port = fc.nat(0xffff)

const anyQuery: fc.Arbitrary<HandedQuery> = fc.record({
  family: fc.constantFrom<4 | 6>(4, 6),
  address: octets(16),
  port,
  transport: fc.nat(1),
  channel: fc.nat(0xffff_ffff),
  interfaceIndex: fc.nat(0xffff_ffff),
  asked: octets(16),
  askedPort: port,
  query: fc.uint8Array({ maxLength: 600 }),
  fate: fc.constantFrom<Fate>('asked', 'answered', 'timeout', 'socket'),
  overTcp: fc.boolean(),
  answer: fc.uint8Array({ maxLength: 2000 }),
})

/** Octets as numbers, in any array. */
function plain(query: HandedQuery): object {
  const list = (value: Uint8Array): readonly number[] => [...value]
  const { address, asked, query: message, answer } = query
  const lists = [address, asked, message, answer].map(list)
  return { ...query, address: 0, asked: 0, query: 0, answer: 0, lists }
}

test('decodeQueries reads what encodeQuery wrote, one after the other', () => {
  fc.assert(
    fc.property(fc.array(anyQuery, { maxLength: 4 }), (queries) => {
      const message = Buffer.concat(queries.map(encodeQuery))
      assert.deepEqual(decodeQueries(message).map(plain), queries.map(plain))
    }),
  )
})

test('decodeGiven assigns descriptors to listeners and connections, and the rest to locks', () => {
  const given = {
    outlives: true,
    supervisor: { socket: '@here', watchdogMs: 20_000 },
    listeners: [
      { family: 4, octets: new Uint8Array(16), port: 53, mode: 'explicit', udp: 10, tcp: 11 },
    ],
    connections: [
      {
        number: 65_537,
        descriptor: 12,
        family: 6,
        peer: Uint8Array.from({ length: 16 }, (_, i) => i),
        peerPort: 40_000,
        interfaceIndex: 3,
        asked: new Uint8Array(16),
        askedPort: 0,
        inFlight: 2,
        halfClosed: true,
        hasAsked: true,
        unread: Uint8Array.of(0, 12, 1),
        unsent: new Uint8Array(0),
      },
    ],
    locks: [13, 14],
  } as const
  const { octets: message, descriptors } = encodeGiven(given)
  assert.deepEqual(descriptors, [10, 11, 12, 13, 14])
  assert.deepEqual(decodeGiven(message, descriptors), given)
  assert.throws(() => decodeGiven(message, [10]), /descriptors are missing/)
  assert.throws(() => decodeGiven(Buffer.from('{}'), []), /not readable/)
})

describe('Channel', { skip }, () => {
  test('carries messages of any length with any number of descriptors, and reports the end once', async () => {
    const posix = loadPosix()
    const folder = mkdtempSync(join(tmpdir(), 'namegate-channel-'))
    const listener = posix.localListen(join(folder, 'door'))
    const messages: Message[] = []
    const ends: string[] = []
    const open = (descriptor: number): Channel =>
      new Channel({
        posix,
        clock: systemClock,
        descriptor,
        onMessage: (message) => messages.push(message),
        onEnd: (reason) => ends.push(reason),
      })
    const near = open(posix.localConnect(join(folder, 'door')))
    const far = open(posix.localAccept(listener))
    try {
      const long = Uint8Array.from({ length: 9_000_000 }, (_, i) => i % 251)
      near.send(
        7,
        long,
        Array.from({ length: 300 }, () => listener),
      )
      near.send(8, new Uint8Array(0))
      await until('both came', () => messages.length === 2)
      assert.deepEqual(
        messages.map(({ kind, octets: got, descriptors }) => [
          kind,
          got.length,
          descriptors.length,
        ]),
        [
          [7, 9_000_000, 300],
          [8, 0, 0],
        ],
      )
      assert.ok(Buffer.from(messages[0]?.octets ?? []).equals(long))
      for (const fd of messages[0]?.descriptors ?? []) posix.closeFd(fd)
      near.close()
      await until('the end is reported', () => ends.length > 0)
      assert.deepEqual(ends, ['it ended'])
    } finally {
      near.close()
      far.close()
      posix.closeFd(listener)
      rmSync(folder, { recursive: true })
    }
  })
})
