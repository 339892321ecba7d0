// A daemon that does not answer, because it is stopped or hangs. Every command that asks it ends and reports it. A slow answer is not cut.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Command } from '../../src/cli/command.ts'
import { isBuilt } from '../../src/native/native.ts'
import { namegate, runCommand } from '../support/nodes/command.ts'

const auditCommand = namegate('audit')
const datapathCommand = namegate('datapath')
const flowsCommand = namegate('flows')
const getCommand = namegate('get')
const policyWaitCommand = namegate('policy wait')
const statusCommand = namegate('status')

const folder = mkdtempSync(join(tmpdir(), 'namegate-silence-'))
const servers: Server[] = []
after(() => {
  for (const server of servers) server.closeAllConnections()
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void = () => undefined,
): Promise<string> {
  const socket = join(folder, String(servers.length))
  const server = createServer(answer)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  return socket
}

const WHO = isBuilt('posix') ? `daemon \\(pid ${process.pid}\\)` : 'daemon'
const SILENT = new RegExp(`^UnavailableError: The ${WHO} at .* does not answer: .*start it again`)
/** Longer than any daemon is silent. */
const LONG_MS = 6500

describe('commands', { concurrency: true }, () => {
  const rows: readonly (readonly [Command, ...string[]])[] = [
    [statusCommand],
    [statusCommand, '--ready'],
    [getCommand, 'names'],
    [datapathCommand, 'verify'],
    [flowsCommand, '--follow'],
    [auditCommand, 'on', '--node'],
    [policyWaitCommand, '--timeout', '60s'],
  ]
  for (const [command, ...args] of rows) {
    const title = [command.name, ...args].join(' ')
    test(`${title} says that the daemon does not answer`, { timeout: 60_000 }, async () => {
      const socket = await serve()
      await assert.rejects(runCommand(command, ...args, '--socket', socket), SILENT)
    })
  }

  test('getCommand notices a daemon that stops in the middle of a list', async () => {
    const socket = await serve(({ method }, response) => {
      if (method === 'GET') response.write('[\n{"name":"a.example"}')
    })
    const args = ['names', '-o', 'json', '--socket', socket]
    await assert.rejects(runCommand(getCommand, ...args), SILENT)
  })

  test('getCommand waits for a list while parts of it arrive', async () => {
    const socket = await serve((_, response) => {
      let left = 3
      const timer = setInterval(() => {
        response.write(left === 3 ? '[{}' : ',{}')
        if (--left > 0) return
        clearInterval(timer)
        response.end(']')
      }, LONG_MS / 3)
    })
    const ran = await runCommand(getCommand, 'names', '-o', 'json', '--socket', socket)
    assert.deepEqual(ran, { code: 0, out: '[{},{},{}]', err: '' })
  })

  test('statusCommand waits for a slow answer of a working daemon', async () => {
    const socket = await serve(({ method }, response) => {
      if (method === 'HEAD') return response.writeHead(405).end()
      return setTimeout(() => response.end('{"ready":true}'), LONG_MS)
    })
    assert.equal((await runCommand(statusCommand, '--ready', '--socket', socket)).code, 0)
  })
})

test('datapathCommand mode reports a daemon that does not answer when only the daemon can set the mode', async () => {
  const socket = await serve()
  const config = join(folder, 'namegate.yaml')
  writeFileSync(config, 'datapath: { kind: memory }\n')
  const args = ['mode', 'audit', '--config', config, '--socket', socket]
  await assert.rejects(runCommand(datapathCommand, ...args), SILENT)
})
