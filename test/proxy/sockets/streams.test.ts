// Connections that fail at once, a shortage of descriptors, and the end of a connection with waiting data.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../../src/core/clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { socketClock } from '../../support/peers/forwarder.ts'
import { TcpClient, until } from '../../support/peers/client.ts'
import { LabProcess } from '../../support/labs/lab-process.ts'
import { nativeIsLacking, openStreams } from '../../support/open-sockets.ts'
import { testSockets } from '../../support/sockets.ts'
import { rcodeOf } from '../../support/transport.ts'
import { FakeUpstream, queryFor } from '../../support/peers/upstream.ts'
import { programArgs } from '../../support/labs/program.ts'

const skip = nativeIsLacking()
const SERVFAIL = 2
const REFUSED = 5

testSockets('Upstream fails a query at once when no server takes the connection', async (net) => {
  const gone = await FakeUpstream.start()
  await gone.stop()
  const forwarder = await net.forward([gone], { clock: socketClock(new FakeClock()) })
  const client = await net.tcpClient(forwarder)
  const [answer] = await client.ask(queryFor('a.test'))
  assert.equal(rcodeOf(answer), SERVFAIL)
  assert.ok((forwarder.upstream.tcp[0]?.counters.faults ?? 0) > 0)
  assert.equal(forwarder.upstream.tcp[0]?.counters.open, 0)
})

test('Streams reports at a later turn that a connection could not begin', { skip }, async () => {
  const streams = openStreams(systemClock)
  const faults: boolean[] = []
  // No connection can begin to port 0 of the broadcast address.
  const server = { family: 4, address: '255.255.255.255', port: 0 } as const
  const stream = streams.connect(server, {
    received: () => assert.fail('received'),
    ended: () => assert.fail('ended'),
    taken: () => assert.fail('taken'),
    closed: (fault) => void faults.push(fault),
  })
  stream.queue(queryFor('a.test'), 0, 20, 1)
  stream.flush()
  assert.deepEqual([stream.waiting, stream.unsent], [0, 0])
  assert.deepEqual(faults, [])
  await until('the fault', () => faults.length > 0)
  stream.destroy()
  assert.deepEqual(faults, [true])
})

test(
  'Streams pauses when descriptors run out, and continues when there are some',
  { skip },
  async () => {
    const file = fileURLToPath(new URL('../../support/peers/tcp-listener.ts', import.meta.url))
    const node = [process.execPath, ...programArgs(file)]
    const limited = ['-c', 'ulimit -n 300 && exec "$@"', 'sh', ...node, 'explicit', '0', '40']
    const listener = new LabProcess('sh', limited)
    const clients: TcpClient[] = []
    try {
      const port = Number((await listener.untilOutput(/^ready (\d+)$/m, 20_000))[1])
      for (let i = 0; i < 60; i++) clients.push(await TcpClient.open(port, `127.0.1.${i + 1}`))
      const times = await listener.until(() => fourFaults(listener.stdout), 'four faults')
      // It pauses at each fault. Tries without a pause would take no time.
      assert.ok((times[3] ?? 0) - (times[0] ?? 0) >= 240, times.join(' '))
      for (const client of clients.slice(0, 50)) client.close()
      // The connections that waited in the kernel are accepted now.
      for (const client of clients.slice(50)) {
        const [answer] = await client.ask(queryFor('a.test'))
        assert.equal(rcodeOf(answer), REFUSED)
      }
    } finally {
      for (const client of clients) client.close()
      await listener.stop()
    }
  },
)

test('Streams sends all waiting data after finish, then closes', { skip }, async () => {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const closed: boolean[] = []
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const streams = openStreams(systemClock)
  const stream = streams.connect(
    { family: 4, address: '127.0.0.1', port: address.port },
    {
      received: () => assert.fail('received'),
      ended: () => undefined,
      taken: () => undefined,
      closed: (fault) => void closed.push(fault),
    },
  )
  try {
    const socket = await accepted
    const message = Buffer.alloc(60_000, 7)
    let frames = 0
    // More than the kernel buffers for a peer that does not read.
    for (; stream.waiting < 3_000_000 && frames < 1000; frames++) {
      stream.queue(message, 0, message.length, frames)
      stream.flush()
    }
    assert.equal(stream.finish(), false)
    assert.deepEqual(closed, [])
    let octets = 0
    socket.on('data', (chunk: Buffer) => (octets += chunk.length))
    socket.resume()
    await until('the end', () => socket.readableEnded)
    assert.equal(octets, frames * (message.length + 2))
    await until('the close', () => closed.length > 0)
    assert.deepEqual(closed, [false])
    assert.equal(stream.waiting, 0)
  } finally {
    stream.destroy()
    server.close()
  }
})

/** The times of the first four faults in milliseconds, or undefined before the fourth. */
function fourFaults(output: string): readonly number[] | undefined {
  const times = Array.from(output.matchAll(/^fault EMFILE (\d+)$/gm), (match) => Number(match[1]))
  return times.length < 4 ? undefined : times
}
