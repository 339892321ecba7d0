// The admin API on its own socket: paths, bodies, streams, and the socket file.

import assert from 'node:assert/strict'
import { existsSync, linkSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { SCHEMAS } from '../../src/admin/document/shapes.ts'
import { AdminServer } from '../../src/admin/server.ts'
import type { AdminState } from '../../src/admin/state.ts'
import { FlowRing } from '../../src/flows/record/flow-ring.ts'
import { systemClock } from '../../src/core/clock.ts'
import { UnavailableError } from '../../src/core/errors.ts'
import { http, KEPT, mkAdmin, type AdminLab } from '../support/nodes/admin.ts'
import { objectIn } from '../support/nodes/command.ts'
import { mkEndpoint, Node } from '../support/nodes/node.ts'
import type { FlowKind } from '../../src/flows/record/flow-kinds.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'

const SCHEMAS_OF_LISTS = [
  ['endpoints', SCHEMAS.Endpoint],
  ['policies', SCHEMAS.Policy],
  ['selectors', SCHEMAS.Selector],
  ['names', SCHEMAS.Name],
  ['ipcache', SCHEMAS.Prefix],
  ['identities', SCHEMAS.Identity],
  ['resources', SCHEMAS.Resource],
  ['datapath', SCHEMAS.Entry],
] as const

const folder = mkdtempSync(join(tmpdir(), 'namegate-admin-'))
const servers: AdminServer[] = []
after(async () => {
  for (const server of servers) await server.stop()
  rmSync(folder, { recursive: true })
})
let made = 0

interface Served extends AdminLab {
  readonly node: Node
  readonly server: AdminServer
  readonly socketPath: string
  readonly errors: unknown[]
}

async function serve(given: Partial<AdminState> = {}, path?: string): Promise<Served> {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  const lab = mkAdmin(node, { clock: systemClock, ...given })
  const socketPath = path ?? join(folder, `${++made}`, 'deep', 'admin.sock')
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const server = new AdminServer({ state: lab.state, socket: socketPath, onError })
  servers.push(server)
  await server.start()
  return { ...lab, node, server, socketPath, errors }
}

test('AdminServer makes the folder and a socket that only its owner can use, and removes it', async () => {
  const { server, socketPath } = await serve()
  assert.equal(statSync(socketPath).mode & 0o777, 0o600)
  await server.stop()
  assert.equal(existsSync(socketPath), false)
})

test('AdminServer never replaces the socket of a live daemon or a file, and refuses a path that is too long', async () => {
  const { socketPath } = await serve()
  const file = join(folder, 'file')
  writeFileSync(file, 'mine')
  const rows: readonly (readonly [path: string, reason: RegExp])[] = [
    [socketPath, /another daemon answers there/],
    [file, /it is no socket: give another admin\.socket$/],
    [folder, /it is no socket: give another admin\.socket$/],
    [join(folder, 'x'.repeat(120)), /longer than 107 octets/],
    [join(file, 'x', 'admin.sock'), /Cannot listen on .*: give another admin.socket/],
  ]
  for (const [path, reason] of rows) {
    await assert.rejects(serve({}, path), (error) => {
      assert.ok(error instanceof UnavailableError)
      assert.match(error.message, reason)
      return true
    })
  }
  assert.equal((await http({ socketPath }, '/v1/resources')).status, 200, 'it still serves')
})

test('AdminServer replaces the socket of a daemon that died', async () => {
  const path = join(folder, 'stale.sock')
  const dead = createServer()
  await new Promise<void>((resolve) => dead.listen(path, resolve))
  // Closing removes the file; a link keeps it as a crash would.
  linkSync(path, `${path}.left`)
  await new Promise<void>((resolve) => dead.close(() => resolve()))
  const { socketPath } = await serve({}, `${path}.left`)
  assert.equal((await http({ socketPath }, '/v1/status')).status, 200)
})

test('AdminServer answers every path of its document, lists as JSON arrays', async () => {
  const { socketPath } = await serve()
  const lists = ['endpoints', 'policies', 'selectors', 'names', 'ipcache', 'identities', 'datapath']
  for (const name of [...lists, 'resources']) {
    const { status, type, text } = await http({ socketPath }, `/v1/${name}`)
    assert.deepEqual([status, type], [200, 'application/json; charset=utf-8'], name)
    const body: unknown = JSON.parse(text)
    assert.ok(Array.isArray(body), name)
    assert.ok(text === '[]\n' || text.split('\n').length === body.length + 3, 'a row a line')
  }
  assert.deepEqual(JSON.parse((await http({ socketPath }, '/v1/verify')).text), { differences: [] })
  for (const [name, schema] of SCHEMAS_OF_LISTS) {
    const body: unknown = JSON.parse((await http({ socketPath }, `/v1/${name}`)).text)
    assert.deepEqual(schema.array().parse(body), body, `rows of ${name} are as their schema says`)
  }
  const status: unknown = JSON.parse((await http({ socketPath }, '/v1/status')).text)
  assert.deepEqual(SCHEMAS.Status.parse(status), status)
  const document: unknown = JSON.parse((await http({ socketPath }, '/v1/openapi.json')).text)
  assert.ok(typeof document === 'object' && document !== null && 'paths' in document)
  const paths = document.paths
  assert.ok(typeof paths === 'object' && paths !== null)
  for (const [path, methods] of Object.entries(paths)) {
    const { status } = await http({ socketPath }, path)
    const isThere = 'get' in Object(methods)
    assert.equal(status, !isThere ? 405 : path.includes('{') ? 404 : 200, path)
  }
})

test('AdminServer returns the flows on disk unchanged, or those before the ones in memory', async () => {
  const { socketPath } = await serve()
  const all = await http({ socketPath }, '/v1/flows/kept')
  assert.deepEqual([all.type, all.text], ['application/x-ndjson', KEPT.join('')])
  assert.equal((await http({ socketPath }, '/v1/flows/kept?older=1')).text, KEPT[0])
})

test('AdminServer returns no flows on disk if none are kept', async () => {
  const { socketPath } = await serve({ keptFlows: undefined })
  const { status, text } = await http({ socketPath }, '/v1/flows/kept')
  assert.deepEqual(
    [status, objectIn(text)['detail']],
    [409, 'flows are not kept on disk here: flows.output has no file'],
  )
  assert.equal((await http({ socketPath }, '/v1/flows/kept?older=1')).text, '')
})

test('AdminServer streams a long list completely, and lets other work run between slices', async () => {
  // Each look at this clock takes a millisecond, so a slice of two is over at every other row.
  let [time, slices] = [0, 0]
  const soon = (run: () => void): void => {
    slices++
    systemClock.soon(run)
  }
  const clock = { ...systemClock, now: () => time++, soon }
  const { node, socketPath } = await serve({ clock })
  const { id } = node.endpoint('shop')
  for (let i = 0; i < 3000; i++) node.learn(id, `name-${i}.example`, [`198.18.0.${i % 250}`])
  const { text } = await http({ socketPath }, '/v1/names')
  const names: unknown = JSON.parse(text)
  assert.ok(Array.isArray(names))
  assert.equal(new Set(names.map((row) => JSON.stringify(row))).size, 3000)
  assert.ok(slices > 1000, `${slices} slices`)
})

test('AdminServer sets mode and audit, and names the fault of a body', async () => {
  const { socketPath, node, audits } = await serve()
  const post = async (path: string, body: string) =>
    await http({ socketPath }, path, { method: 'POST', body })
  const mode = await post('/v1/mode', '{"mode":"bypass"}')
  assert.deepEqual(
    [mode.status, mode.text, node.recorder.mode.read()],
    [200, '{"mode":"bypass"}\n', 'bypass'],
  )
  const good = [
    '{"scope":"node","on":true}',
    '{"scope":"endpoint","name":"a","on":false}',
    '{"scope":"selector","matchLabels":{"app":"x"},"on":true}',
  ]
  for (const body of good) assert.equal((await post('/v1/audit', body)).status, 200, body)
  assert.deepEqual(audits, [
    { scope: { kind: 'node' }, on: true },
    { scope: { kind: 'endpoint', name: 'a' }, on: false },
    { scope: { kind: 'selector', selector: { matchLabels: new Map([['app', 'x']]) } }, on: true },
  ])
  const bad: readonly (readonly [path: string, body: string, status: number, reason: string])[] = [
    ['/v1/mode', '{"mode":"off"}', 400, 'unknown mode'],
    ['/v1/mode', '', 400, 'no JSON'],
    ['/v1/mode', '[1]', 400, 'a list'],
    ['/v1/mode', '{"mode":"audit","now":1}', 400, 'unknown field'],
    ['/v1/audit', '{"scope":"node"}', 400, 'on is missing'],
    ['/v1/audit', '{"scope":"node","name":"a","on":true}', 400, 'a name for the node'],
    ['/v1/audit', '{"scope":"selector","matchLabels":{},"on":true}', 400, 'no labels'],
    ['/v1/audit', '{"scope":"selector","matchLabels":{"a":1},"on":true}', 400, 'no text'],
    ['/v1/audit', '{"scope":"endpoint","name":"nobody","on":true}', 404, 'unknown endpoint'],
    ['/v1/audit', `{"scope":"${'x'.repeat(70_000)}"}`, 413, 'too long'],
    ['/v1/detach', '{}', 409, 'the memory datapath has nothing to detach'],
    ['/v1/status', '{}', 405, 'only to be read'],
    ['/v1/nothing', '{}', 404, 'no such path'],
  ]
  for (const [path, body, status, reason] of bad) {
    const answer = await post(path, body)
    assert.equal(answer.status, status, reason)
    assert.ok('error' in Object(JSON.parse(answer.text)), reason)
  }
  assert.equal((await http({ socketPath }, '/v1/mode')).status, 405)
  assert.equal((await http({ socketPath }, '/v1/status', { method: 'DELETE' })).status, 405)
})

test('AdminServer answers 500 to a bug, logs it, and continues', async () => {
  let broken = true
  const { socketPath, errors } = await serve({
    notReady: () => {
      if (broken) throw new Error('a bug')
      return []
    },
  })
  assert.equal((await http({ socketPath }, '/v1/status')).status, 500)
  assert.deepEqual(errors.map(String), ['Error: a bug'])
  broken = false
  assert.equal((await http({ socketPath }, '/v1/status')).status, 200)
})

test('AdminServer shows kept flows, the last ones, filtered, and follows', async () => {
  const { state, socketPath } = await serve({ flows: new FlowRing() })
  const add = (kind: FlowKind): void => state.flows.addDns(0, mkDnsFlow('a.example', { kind }))
  for (const kind of ['answered', 'denied', 'answered'] as const) add(kind)
  const numbers = (text: string) => [...text.matchAll(/"number":(\d+)/g)].map(([, n]) => Number(n))
  const get = async (query: string) => (await http({ socketPath }, `/v1/flows${query}`)).text
  assert.deepEqual(numbers(await get('')), [0, 1, 2])
  assert.deepEqual(numbers(await get('?verdict=deny')), [1])
  assert.deepEqual(numbers(await get('?last=2')), [1, 2])
  assert.equal((await http({ socketPath }, '/v1/flows?verdict=x')).status, 400)
  assert.equal((await http({ socketPath }, '/v1/flows?last=x')).status, 400)
  const followed = await new Promise<string>((resolve, reject) => {
    const sent = request({ socketPath, path: '/v1/flows?follow=1', agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        const seen = numbers(text).length
        if (seen === 3) add('denied')
        if (seen === 4) {
          resolve(text)
          sent.destroy()
        }
      })
      response.on('error', () => undefined)
    })
    sent.on('error', reject)
    sent.end()
  })
  assert.deepEqual(numbers(followed), [0, 1, 2, 3])
})

test('AdminServer ends followed streams when it stops', async () => {
  const { server, socketPath } = await serve()
  const ended = new Promise<void>((resolve) => {
    request({ socketPath, path: '/v1/flows?follow=1', agent: false }, (response) => {
      response.on('error', () => undefined)
      response.on('close', resolve)
      response.resume()
      void server.stop()
    }).end()
  })
  await ended
})
