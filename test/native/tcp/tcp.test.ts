// The addon's own interface. It refuses wrong arguments before it reads or writes memory by them. A chain of frames that leaves the memory,
// or is a ring, ends the connection, and none of its octets are sent.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { constants } from 'node:os'
import { describe, it } from 'node:test'
import { isBuilt, loadTcp } from '../../../src/native/native.ts'
import {
  FRAME_WORDS,
  READ_MAX,
  ROW_CLOSED,
  ROW_WORDS,
  type TcpColumns,
} from '../../../src/native/tcp/tcp.ts'
import { until } from '../../support/peers/client.ts'

const skip = isBuilt('tcp') ? false : 'tcp.node is not built'
const { EBADF, EINVAL, EPIPE } = constants.errno
const CAPACITY = 4
const ROWS = 16
const FRAMES = 8
const OUT = 1000

function makeColumns(): TcpColumns {
  return [
    new Int32Array(ROWS * ROW_WORDS),
    new Uint8Array(READ_MAX),
    new Uint8Array(ROWS * 32),
    new Uint16Array(ROWS * 2),
    new Uint32Array(ROWS),
    new Uint8Array(ROWS),
    new Uint32Array(CAPACITY),
    new Uint8Array(OUT),
    new Int32Array(FRAMES * FRAME_WORDS),
  ]
}

describe('TcpAddon', { skip }, () => {
  it('TcpAddon refuses memory that is too small, and arguments of other kinds', () => {
    const addon = loadTcp()
    const run = (): void => undefined
    const whole = makeColumns()
    assert.equal(typeof addon.create(CAPACITY, ROWS, run, whole), 'object')
    const [rows, slab, addresses, ports, interfaces, families, unsent, out, frames] = whole
    const short: readonly (readonly [reason: string, columns: TcpColumns])[] = [
      [
        'rows',
        [rows.subarray(1), slab, addresses, ports, interfaces, families, unsent, out, frames],
      ],
      [
        'slab',
        [rows, slab.subarray(1), addresses, ports, interfaces, families, unsent, out, frames],
      ],
      [
        'addresses',
        [rows, slab, addresses.subarray(1), ports, interfaces, families, unsent, out, frames],
      ],
      [
        'ports',
        [rows, slab, addresses, ports.subarray(1), interfaces, families, unsent, out, frames],
      ],
      [
        'unsent',
        [rows, slab, addresses, ports, interfaces, families, unsent.subarray(1), out, frames],
      ],
    ]
    for (const [reason, columns] of short) {
      assert.throws(() => addon.create(CAPACITY, ROWS, run, columns), /long enough/, reason)
    }
    assert.throws(() => addon.create(0, ROWS, run, whole), /in range/)
    assert.throws(() => addon.create(CAPACITY, 1 << 20, run, whole), /in range/)
    assert.throws(() => addon.next(whole), /an engine/)
  })

  it('TcpAddon accepts only open slots and listeners', () => {
    const addon = loadTcp()
    const engine = addon.create(CAPACITY, ROWS, () => undefined, makeColumns())
    assert.ok(typeof engine === 'object')
    for (const number of [0, CAPACITY - 1, CAPACITY, 2 ** 31, 2 ** 32 - 1]) {
      assert.equal(addon.send(engine, number, 0), -EBADF)
      assert.equal(addon.close(engine, number, 1), -EBADF)
      assert.equal(addon.reading(engine, number, 1), -EBADF)
      assert.equal(addon.portOf(engine, number), -EBADF)
      assert.equal(addon.unlisten(engine, number), -EBADF)
    }
    assert.throws(() => addon.listen(engine, 5, new Uint8Array(16), 0, 0, 1, -1), /4 or 6/)
    assert.throws(() => addon.listen(engine, 4, new Uint8Array(15), 0, 0, 1, -1), /long enough/)
    assert.equal(addon.next(engine), 0)
  })

  it('TcpAddon sends nothing of a chain that leaves the memory or is a ring', async () => {
    const addon = loadTcp()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    const bad: readonly (readonly [reason: string, head: number, frame: readonly number[]])[] = [
      ['a missing frame', FRAMES, [0, 2, -1]],
      ['a missing next frame', 0, [0, 2, FRAMES]],
      ['begins behind the end', 0, [OUT + 1, 2, -1]],
      ['ends behind the end', 0, [OUT - 1, 2, -1]],
      ['offset and length overflow', 0, [-1, 2, -1]],
      ['length is negative', 0, [0, -1, -1]],
      ['its own next', 0, [0, 2, 0]],
      ['its own next, of no length', 0, [0, 0, 0]],
    ]
    try {
      for (const [reason, head, frame] of bad) {
        const columns = makeColumns()
        const [rows, , , , , , unsent, , frames] = columns
        const engine = addon.create(CAPACITY, ROWS, () => undefined, columns)
        assert.ok(typeof engine === 'object')
        const octets = Uint8Array.of(127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
        const slot = addon.connect(engine, 4, octets, address.port, 0)
        assert.ok(slot >= 0)
        const socket = await accepted
        const ended = once(socket, 'end')
        let received = 0
        socket.on('data', (chunk: Buffer) => (received += chunk.length))
        frames.set(frame)
        assert.equal(addon.send(engine, slot, head), -EINVAL, reason)
        assert.equal(unsent[slot], 0)
        assert.equal(addon.send(engine, slot, head), -EPIPE, reason)
        await until('the row', () => addon.next(engine) === 1)
        assert.deepEqual([...rows.subarray(0, 3)], [ROW_CLOSED, slot, EINVAL])
        addon.close(engine, slot, 0)
        await ended
        assert.equal(received, 0, reason)
      }
    } finally {
      server.close()
    }
  })
})
