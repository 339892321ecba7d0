// The socket's file is removed while the daemon runs. The server makes it again, and open requests continue.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../src/admin/server.ts'
import { Client } from '../../src/client/client.ts'
import { systemClock } from '../../src/core/clock.ts'
import { http, mkAdmin } from '../support/nodes/admin.ts'
import { until } from '../support/peers/client.ts'
import { Node } from '../support/nodes/node.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-removed-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function mkServer(name: string) {
  const socket = join(folder, name, 'admin.sock')
  const told: (string | undefined)[] = []
  const { state } = mkAdmin(new Node(), { clock: systemClock })
  const server = new AdminServer({
    state,
    socket,
    onError: (error) => assert.ifError(error),
    onRemoved: (reason) => told.push(reason),
  })
  return { server, socket, told, state }
}

test('AdminServer makes its socket again when another program removed it, and logs it once', async () => {
  const { server, socket, told, state } = mkServer('file')
  await server.start()
  try {
    const client = new Client({ path: socket })
    const follow = client.text('GET /v1/flows', { query: { follow: '1' } })
    const first = follow[Symbol.asyncIterator]().next()
    rmSync(socket)
    await until('the socket is made again', () => told.length > 0)
    assert.deepEqual(told, [undefined])
    assert.equal(statSync(socket).mode & 0o777, 0o600, 'its owner’s alone')
    assert.equal((await http({ socketPath: socket }, '/v1/status')).status, 200)
    state.flows.addPolicyLost(0, 1, 'p.yaml')
    assert.match(String((await first).value), /policy-lost/, 'the open stream continues')
  } finally {
    await server.stop()
  }
  assert.equal(existsSync(socket), false)
})

test('AdminServer tries again while the folder is missing and in the way', async () => {
  const { server, socket, told } = mkServer('folder')
  await server.start()
  try {
    rmSync(join(folder, 'folder'), { recursive: true })
    writeFileSync(join(folder, 'folder'), '')
    await until('the server fails to make it', () => told.length > 0)
    assert.match(told[0] ?? '', /Cannot listen on/)
    rmSync(join(folder, 'folder'))
    await until('the socket is made again', () => told.at(-1) === undefined)
    assert.equal((await http({ socketPath: socket }, '/v1/status')).status, 200)
  } finally {
    await server.stop()
  }
})
