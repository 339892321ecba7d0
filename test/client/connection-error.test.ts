// ConnectionError has the reason why a request got no answer, as a word for programs.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect } from '../../src/client.ts'
import { ConnectionError, type ConnectionFailure } from '../../src/client/connection-error.ts'

const NOBODY = 65534
const folder = mkdtempSync(join(tmpdir(), 'namegate-client-'))
const servers: Server[] = []
after(() => {
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true })
})

/** Starts a server that calls `treat` for each connection. */
async function serve(name: string, treat: (socket: Socket) => void): Promise<string> {
  const path = join(folder, name)
  const server = createServer(treat)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return path
}

async function failureAt(path: string): Promise<ConnectionFailure> {
  try {
    await connect(path).request('GET /v1/status', { timeoutMs: 200 })
  } catch (error) {
    assert.ok(error instanceof ConnectionError, String(error))
    return error.failure
  }
  return assert.fail(`${path} answers`)
}

test('ConnectionError says if no daemon listens, hangs, or ends in the middle', async () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const part = 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'
  const rows: readonly (readonly [path: string, failure: ConnectionFailure, reason: string])[] = [
    [join(folder, 'none'), 'absent', 'there is no such file'],
    [file, 'absent', 'no process listens there'],
    [await serve('silent', (socket) => socket.resume()), 'silent', 'it reads and says nothing'],
    [await serve('shut', (socket) => socket.destroy()), 'broken', 'it ends before its answer'],
    [await serve('part', (socket) => socket.end(part)), 'broken', 'it ends in its answer'],
  ]
  for (const [path, failure, reason] of rows) assert.equal(await failureAt(path), failure, reason)
})

test(
  'ConnectionError says if the user may not connect',
  { skip: process.geteuid?.() === 0 ? false : 'needs root, to become another user' },
  async () => {
    chmodSync(folder, 0o755)
    const path = await serve('closed', (socket) => socket.destroy())
    chmodSync(path, 0o600)
    process.seteuid?.(NOBODY)
    try {
      assert.equal(await failureAt(path), 'denied')
    } finally {
      process.seteuid?.(0)
    }
  },
)
