// The UDP addon's own interface. It refuses wrong arguments before it reads or writes memory by them. Old handles do nothing, a datagram
// that cannot be sent affects no other, and bursts arrive complete in full batches.

import assert from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { constants } from 'node:os'
import { after, describe, it } from 'node:test'
import { systemClock } from '../../../src/core/clock.ts'
import { isBuilt, loadUdp } from '../../../src/native/native.ts'
import {
  AREA_QUERIES,
  CLIENTS_QUERIES,
  ROW_WORDS,
  ROWS_MAX,
  SPEC_WORDS,
  type UdpClientColumns,
} from '../../../src/native/udp/udp.ts'
import { type MessageBatch, BatchCollector } from '../../../src/proxy/messages/batch.ts'
import { ClientColumns } from '../../../src/proxy/messages/client-columns.ts'
import type { UdpListener } from '../../../src/proxy/sockets/udp-listener.ts'
import { Datagrams } from '../../../src/proxy/sockets/datagrams.ts'
import { until } from '../../support/peers/client.ts'
import { MessageView } from '../../../src/dns/message-view.ts'

const skip = isBuilt('udp') ? false : 'udp.node is not built'
const { EBADF } = constants.errno
const LOOPBACK = Uint8Array.of(127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

function columns(rows: number): UdpClientColumns {
  const c = new ClientColumns(rows)
  return [
    c.families,
    c.addresses,
    c.ports,
    c.transports,
    c.channels,
    c.interfaces,
    c.askedAddresses,
    c.askedPorts,
  ]
}

describe('UdpAddon', { skip }, () => {
  const opened: (() => void)[] = []

  after(() => {
    for (const close of opened) close()
  })

  /** An engine with a listener on loopback whose queries go to `onBatch`. */
  function listening(onBatch: (batch: MessageBatch) => void): {
    readonly datagrams: Datagrams
    readonly listener: UdpListener
  } {
    const datagrams = new Datagrams({ addon: loadUdp(), clock: systemClock })
    datagrams.fill(new BatchCollector({ clock: systemClock, onBatch }))
    const place = { channel: 3, family: 4, octets: LOOPBACK, port: 0, mode: 'explicit' } as const
    const listener = datagrams.listen(place)
    opened.push(() => datagrams.stop())
    return { datagrams, listener }
  }

  async function receiver(): Promise<{ readonly socket: Socket; readonly messages: Buffer[] }> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
    const messages: Buffer[] = []
    socket.on('message', (message) => messages.push(message))
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    opened.push(() => socket.close())
    return { socket, messages }
  }

  it('UdpAddon refuses memory that is too small, and arguments of other kinds', () => {
    const addon = loadUdp()
    const engine = addon.open(() => undefined)
    assert.ok(typeof engine === 'object')
    const [families, addresses, ports, ...rest] = columns(8)
    assert.throws(() => addon.shareArea(engine, 99, [families]), /an area/)
    assert.throws(
      () => addon.shareClients(engine, 0, [families, addresses.subarray(1), ports, ...rest]),
      /long enough/,
    )
    assert.throws(
      () => addon.shareClients(engine, 0, [families, addresses, ports.subarray(1), ...rest]),
      /long enough/,
    )
    assert.throws(() => addon.receiveQueries(engine, 0, 1, 64, 64), /a place in the batch/)
    addon.shareClients(engine, CLIENTS_QUERIES, columns(8))
    addon.shareArea(engine, AREA_QUERIES, [new Uint8Array(8 * 64)])
    addon.shareQueries(engine, 0, [new Uint32Array(8), new Uint32Array(8), new Uint8Array(8)])
    assert.equal(addon.receiveQueries(engine, 0, 8, 64, 64), 0)
    const rows: readonly (readonly [
      reason: string,
      start: number,
      room: number,
      stride: number,
    ])[] = [
      ['more rows than exist', 1, 8, 64],
      ['beyond the end', 8, 1, 64],
      ['cells that are longer', 0, 8, 65],
      ['wrapping round', 2 ** 32 - 1, 1, 64],
    ]
    for (const [reason, start, room, stride] of rows) {
      const receive = () => addon.receiveQueries(engine, start, room, stride, 64)
      assert.throws(receive, /a place in the batch/, reason)
    }
    assert.throws(() => addon.receiveAnswers(engine, 64, 65), /a cell/)
    assert.throws(() => addon.flush(engine, 1), /a number of rows/)
    const short = new Int32Array(SPEC_WORDS - 1)
    assert.throws(() => addon.socket(engine, short, LOOPBACK, LOOPBACK), /long enough/)
    assert.throws(() => addon.poll({}), /an engine that runs/)
    addon.stop(engine)
    assert.throws(() => addon.poll(engine), /an engine that runs/)
  })

  it('UdpAddon accepts only open handles', () => {
    const addon = loadUdp()
    const engine = addon.open(() => undefined)
    assert.ok(typeof engine === 'object')
    const spec = Int32Array.of(4, 0, 0, 0, 0, 0, 0, 0, 0)
    const first = addon.socket(engine, spec, LOOPBACK, LOOPBACK)
    assert.ok(first > 0 && addon.port(engine, first) > 0)
    assert.equal(addon.close(engine, first), 0)
    const second = addon.socket(engine, spec, LOOPBACK, LOOPBACK)
    assert.notEqual(second, first, 'the place is used again with another handle')
    for (const handle of [first, 0, 0xffff, 2 ** 31]) {
      assert.equal(addon.port(engine, handle), -EBADF)
      assert.equal(addon.close(engine, handle), -EBADF)
      assert.equal(addon.stats(engine, handle, new Float64Array(8)), -EBADF)
    }
    addon.stop(engine)
  })

  it('UdpAddon skips rows that point outside of memory or to no socket', async () => {
    const addon = loadUdp()
    const engine = addon.open(() => undefined)
    assert.ok(typeof engine === 'object')
    const { socket, messages } = await receiver()
    const peer = socket.address().port
    const handle = addon.socket(
      engine,
      Int32Array.of(4, 0, 0, peer, 0, 0, 0, 0, 0),
      LOOPBACK,
      LOOPBACK,
    )
    assert.ok(handle > 0)
    const octets = Buffer.from('..message')
    const rows = new Uint32Array(ROWS_MAX * ROW_WORDS)
    addon.shareArea(engine, AREA_QUERIES, [octets])
    addon.shareSends(engine, 0, [rows, new Int32Array(512 * 3)])
    const bad: readonly (readonly number[])[] = [
      [handle + 1, AREA_QUERIES, 0, 9, 0x4142],
      [handle, 7, 0, 9, 0x4142],
      [handle, 2 ** 32 - 1, 0, 9, 0x4142],
      [handle, AREA_QUERIES, 1, 9, 0x4142],
      [handle, AREA_QUERIES, 2 ** 32 - 1, 9, 0x4142],
      [handle, AREA_QUERIES, 0, 2 ** 32 - 1, 0x4142],
      [handle, AREA_QUERIES, 0, 1, 0x4142],
      [handle, AREA_QUERIES, 0, 9, 0x4142],
    ]
    for (const [i, words] of bad.entries()) rows.set(words, i * ROW_WORDS)
    addon.flush(engine, bad.length)
    await until('the one that is right', () => messages.length > 0)
    assert.deepEqual(messages.map(String), ['ABmessage'])
    addon.stop(engine)
  })

  it('Datagrams receives a burst whole and in order, in batches of 256', async () => {
    const seen: number[] = []
    const sizes: number[] = []
    const { listener } = listening((batch) => {
      sizes.push(batch.count)
      for (let i = 0; i < batch.count; i++) {
        const octets = Buffer.from(batch.view(i, new MessageView()).copy())
        seen.push(octets.readUInt32BE(0))
        assert.equal(octets.length, 4 + (octets.readUInt32BE(0) % 900))
      }
    })
    const { datagrams } = listening(() => undefined)
    const connected = datagrams.connect(
      { family: 4, address: '127.0.0.1', port: listener.port },
      0,
      { received: () => undefined, fault: assert.fail, dropped: () => undefined },
    )
    assert.ok(typeof connected === 'object')
    const message = Buffer.alloc(4 + 900)
    for (let i = 0; i < 3000; i++) {
      message.writeUInt32BE(i)
      connected.send(message, 0, 4 + (i % 900), 0)
    }
    datagrams.flush()
    await until('all', () => seen.length === 3000)
    assert.equal(Math.max(...sizes), 256)
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      [...Array(3000).keys()],
    )
    assert.equal(listener.counters.kernelDrops, 0)
  })

  it('Datagrams sends the rest when one datagram cannot be sent', async () => {
    const { datagrams, listener } = listening(() => undefined)
    const { socket, messages } = await receiver()
    const clients = new ClientColumns(5)
    for (let row = 0; row < 5; row++) {
      clients.families[row] = 4
      // The kernel refuses port 0, and broadcast needs an option that the socket lacks.
      clients.ports[row] = row === 1 ? 0 : socket.address().port
      clients.addresses.set(row === 3 ? [255, 255, 255, 255] : LOOPBACK, row * 16)
      const octets = Buffer.from(`..message ${row}`)
      listener.send(clients, row, MessageView.of(octets), 0x4142)
    }
    datagrams.flush()
    await until('three', () => messages.length === 3)
    assert.deepEqual(messages.map(String).toSorted(), ['ABmessage 0', 'ABmessage 2', 'ABmessage 4'])
    const { sent, sendsDropped, socketErrors } = listener.counters
    assert.deepEqual(
      { sent, sendsDropped, socketErrors },
      { sent: 3, sendsDropped: 2, socketErrors: 2 },
    )
  })

  it('Datagrams sends datagrams of one piece as separate datagrams', async () => {
    const { datagrams, listener } = listening(() => undefined)
    const receivers = [await receiver(), await receiver()]
    const clients = new ClientColumns(1)
    clients.families[0] = 4
    clients.addresses.set(LOOPBACK)
    const expected: string[][] = [[], []]
    for (let i = 0; i < 900; i++) {
      const text = `${i} `.padEnd(20 + (i % 7 === 0 ? 1 : 0), 'x')
      clients.ports[0] = receivers[i % 2]?.socket.address().port ?? 0
      expected[i % 2]?.push(`AB${text}`)
      listener.send(clients, 0, MessageView.of(Buffer.from(`..${text}`)), 0x4142)
    }
    datagrams.flush()
    await until('all', () => receivers.every(({ messages }) => messages.length === 450))
    for (const [i, { messages }] of receivers.entries()) {
      assert.deepEqual(messages.map(String).toSorted(), expected[i]?.toSorted())
    }
    assert.equal(listener.counters.sent, 900)
  })

  it('Datagrams reports a refusal before the next query is due', async () => {
    const { socket } = await receiver()
    const { port } = socket.address()
    socket.removeAllListeners('message')
    const { datagrams } = listening(() => undefined)
    const gone = createSocket('udp4')
    gone.bind(0, '127.0.0.1')
    await once(gone, 'listening')
    const closedPort = gone.address().port
    gone.close()
    const faults: string[] = []
    const owner = {
      received: () => undefined,
      fault: (code: string) => void faults.push(code),
      dropped: () => undefined,
    }
    const connected = datagrams.connect(
      { family: 4, address: '127.0.0.1', port: closedPort },
      0,
      owner,
    )
    const sound = datagrams.connect({ family: 4, address: '127.0.0.1', port }, 0, owner)
    assert.ok(typeof connected === 'object' && typeof sound === 'object')
    connected.send(Buffer.from('query'), 0, 5, 1)
    sound.send(Buffer.from('query'), 0, 5, 1)
    datagrams.flush()
    await until('the refusal', () => faults.length > 0)
    assert.deepEqual(faults, ['ECONNREFUSED'])
    connected.close()
    connected.send(Buffer.from('query'), 0, 5, 1)
    datagrams.flush()
    assert.deepEqual(faults, ['ECONNREFUSED'], 'a closed socket sends nothing')
  })
})
