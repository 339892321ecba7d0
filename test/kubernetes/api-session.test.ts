// A session that ends while its socket connects. Node.js then still reports the connection.

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, Socket } from 'node:net'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiSession } from '../../src/kubernetes/connection/api-session.ts'
import { newConnectionCounts } from '../../src/kubernetes/connection/connection-counts.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('ApiSession throws nothing when it ends while it connects', async (context) => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  context.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const connected = new Promise<void>((done) => {
    const onSocket = (message: unknown): void => {
      assert.ok(typeof message === 'object' && message !== null && 'socket' in message)
      assert.ok(message.socket instanceof Socket)
      // This listener comes before that of the session.
      message.socket.once('connect', () => {
        session.destroy()
        done()
      })
    }
    subscribe('net.client.socket', onSocket)
    context.after(() => unsubscribe('net.client.socket', onSocket))
  })
  const origin = `http://127.0.0.1:${address.port}`
  const session = new ApiSession(origin, {}, new FakeClock(), newConnectionCounts())
  await connected
  await turn()
  assert.equal(session.isOver, true)
})
