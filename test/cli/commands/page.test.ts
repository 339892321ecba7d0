// `namegate page`: the page of a daemon behind its admin socket, on a port of this host and with a token.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { servePage as passOn, type PassedOn } from '../../../src/cli/commands/page.ts'
import { watchDaemon } from '../../../src/cli/page/watch-daemon.ts'
import { ForwardedPage } from '../../../src/cli/page/forwarded-page.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { UnavailableError } from '../../../src/core/errors.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { send, servePage, type PageLab } from '../../support/nodes/page.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const POLICY = 'egress: [ { toCIDR: [ 192.0.2.0/28 ] } ]'

async function serve(
  context: TestContext,
): Promise<{ readonly lab: PageLab; readonly page: PassedOn }> {
  const { state } = mkAdmin(mkPolicyNode([POLICY]), { clock: systemClock })
  const lab = await servePage(state)
  const page = await passOn(lab.socket.socketPath, 0)
  context.after(async () => {
    await page.stop()
    await lab.stop()
  })
  return { lab, page }
}

test('servePage passes the page on to a client with the token, and nothing else to any', async (context) => {
  const { page } = await serve(context)
  const right = { authorization: `Bearer ${page.token}` }
  const json = { ...right, 'content-type': 'application/json' }
  const question = JSON.stringify({ endpoint: 'a', ask: 'a.b' })
  const rows: readonly (readonly [string, object, status: number, why: string])[] = [
    ['/page/app.js', {}, 401, 'no token'],
    ['/page/app.js', { headers: { authorization: 'Bearer wrong' } }, 401, 'a wrong token'],
    ['/', {}, 401, 'the form that asks for the token'],
    ['/', { headers: right }, 200, 'the page'],
    ['/page/app.js', { headers: right }, 200, 'its script'],
    ['/page/explore?text=a', { headers: right }, 200, 'a query'],
    ['/page/explain', { method: 'POST', headers: json, body: question }, 200, 'a body'],
    ['/page/audit', { method: 'POST', headers: json, body: '{}' }, 403, 'no change'],
    ['/v1/status', { headers: right }, 404, 'the admin API'],
    ['/metrics', { headers: right }, 404, 'metrics'],
    ['/page/app.js', { headers: { ...right, origin: 'http://evil.test' } }, 403, 'another site'],
  ]
  for (const [path, sent, status, why] of rows) {
    assert.equal((await send({ port: page.port }, path, sent)).status, status, why)
  }
  const { headers } = await send({ port: page.port }, '/', { headers: right })
  assert.match(String(headers['content-security-policy']), /default-src 'none'/)
})

/** A daemon in a thread of its own: it closes the connection as soon as it has answered. */
const ANSWERS_AND_CLOSES = `
const { createServer } = require('node:http')
const { parentPort, workerData } = require('node:worker_threads')
createServer(async (request, response) => {
  for await (const _ of request) {}
  response.writeHead(200, { connection: 'close' }).end('{}')
}).listen(workerData, () => parentPort.postMessage('listening'))
`

test('ForwardedPage passes every body on to a daemon that closes the connection after its answer', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-page-'))
  const socket = join(folder, 'admin.sock')
  const worker = new Worker(ANSWERS_AND_CLOSES, { eval: true, workerData: socket })
  await once(worker, 'message')
  const page = new ForwardedPage(socket)
  const server = createServer((asked, response) => void page.answer(asked, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(async () => {
    server.close()
    await worker.terminate()
    rmSync(folder, { recursive: true })
  })
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const headers = { 'content-type': 'application/json' }
  const seen = new Set<number>()
  for (let i = 0; i < 100; i++) {
    const sent = { method: 'POST', headers, body: '{"endpoint":"a","ask":"a.b"}' }
    seen.add((await send({ port: address.port }, '/page/explain', sent)).status)
  }
  assert.deepEqual([...seen], [200])
})

test('servePage passes a stream on line by line, and ends it with its viewer', async (context) => {
  const { lab, page } = await serve(context)
  const headers = { authorization: `Bearer ${page.token}` }
  const first = await new Promise<string>((done, fail) => {
    const asked = request(
      { port: page.port, path: '/page/live', headers, agent: false },
      (answer) => {
        answer.once('data', (chunk: Uint8Array) => {
          assert.equal(lab.counts.viewers, 1)
          asked.destroy()
          done(Buffer.from(chunk).toString())
        })
      },
    )
    asked.on('error', fail)
    asked.end()
  })
  assert.match(first, /^\{"overview":/)
  for (let n = 0; n < 100 && lab.counts.viewers > 0; n++)
    await new Promise((done) => setTimeout(done, 20))
  assert.equal(lab.counts.viewers, 0)
})

test('servePage answers 502 when the daemon has ended, and names the option for a taken port', async (context) => {
  const { lab, page } = await serve(context)
  await assert.rejects(
    passOn(lab.socket.socketPath, page.port),
    (error) => error instanceof UnavailableError && /another --port/.test(error.message),
  )
  const gone = await passOn(`${lab.folder}/none.sock`, 0)
  context.after(async () => await gone.stop())
  const headers = { authorization: `Bearer ${gone.token}` }
  const { status, body } = await send({ port: gone.port }, '/page/app.js', { headers })
  assert.deepEqual([status, /does not answer/.test(body.toString())], [502, true])
})

test('watchDaemon says once that the daemon ended, and once that it is back', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-page-'))
  const socket = join(folder, 'admin.sock')
  const said: string[] = []
  const listen = async (): Promise<Server> => {
    const server = createServer().listen(socket)
    await once(server, 'listening')
    return server
  }
  let server = await listen()
  const stop = watchDaemon(socket, (text) => said.push(text), 20)
  context.after(() => {
    stop()
    server.close()
    rmSync(folder, { recursive: true })
  })
  const until = async (count: number): Promise<void> => {
    for (let n = 0; n < 250 && said.length < count; n++) await sleep(20)
    await sleep(200)
  }
  await until(1)
  assert.deepEqual(said, [])
  server.close()
  await until(1)
  server = await listen()
  await until(2)
  assert.deepEqual(said, ['the daemon ended; waiting for it', 'the daemon is back'])
})
