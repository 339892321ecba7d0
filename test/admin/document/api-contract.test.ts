// The OpenAPI document: a validator accepts it, and every response of a running daemon has the documented form, errors included.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { openApi } from '../../../src/admin/document/openapi.ts'
import { AdminServer } from '../../../src/admin/server.ts'
import type { AdminState } from '../../../src/admin/state.ts'
import { systemClock } from '../../../src/core/clock.ts'
import type { ResourceOutcome } from '../../../src/enforcement/resource-control.ts'
import { FlowRing } from '../../../src/flows/record/flow-ring.ts'
import { encodeQuery } from '../../../src/dns/codec.ts'
import { ApiDocument } from '../../support/api-document.ts'
import { http, mkAdmin, type HttpOptions } from '../../support/nodes/admin.ts'
import { endpointsText, policyText } from '../../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../../support/nodes/daemon-process.ts'
import { mkEndpoint, Node, prefixOf } from '../../support/nodes/node.ts'
import { until } from '../../support/peers/client.ts'
import { FakeUpstream } from '../../support/peers/upstream.ts'

const api = new ApiDocument()
const RESOURCES = `resources: [{ name: of-file, addresses: [192.0.2.10], labels: { app: db } }]\n`
const question = encodeQuery({ id: 1, name: 'a.example', type: 'A', udpSize: 512 })
const QUERY = question.kind === 'ok' ? Buffer.from(question.octets).toString('base64') : ''

let upstream: FakeUpstream
let folder: DaemonFolder
let daemon: RunningDaemon

before(async () => {
  upstream = await FakeUpstream.start()
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['a.example', '*.b.example']),
      'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
      'resources.yaml': RESOURCES,
    },
    config: {
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }`,
      resources: '{ files: [resources.yaml] }',
    },
  })
  daemon = await folder.serve()
  const client = await daemon.client()
  assert.deepEqual((await client.ask('a.example')).addresses, ['192.0.2.1'])
  assert.equal((await client.ask('denied.example')).rcode, 'REFUSED')
  client.close()
})
after(async () => {
  await daemon.process.stop()
  await upstream.stop()
  folder.remove()
})

/** Sends a request and compares the response with the document. */
async function check(
  socketPath: string,
  method: string,
  path: string,
  status: number,
  options: HttpOptions = {},
): Promise<string> {
  const answer = await http({ socketPath }, path, { method, ...options })
  assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`)
  assert.deepEqual(api.faults(method, path, answer), [])
  return answer.text
}

test('openApi makes a document that a validator of OpenAPI 3.1 accepts', async () => {
  const document = { ...openApi('1.2.3') }
  const validator = new Validator()
  const found = await validator.validate(JSON.parse(JSON.stringify(document)))
  assert.deepEqual(found, { valid: true })
  assert.equal(validator.version, '3.1')
})

type Row = readonly [
  request: string,
  status: number,
  body: object | undefined,
  reason: string,
  headers?: Readonly<Record<string, string>>,
]
const ANY = { 'if-none-match': '*' } as const
const OTHER = { 'if-match': '"x"' } as const

const ROWS: readonly Row[] = [
  ['GET /v1/endpoints', 200, undefined, 'one endpoint'],
  ['GET /v1/policies', 200, undefined, 'one policy'],
  ['GET /v1/selectors', 200, undefined, 'names and patterns'],
  ['GET /v1/names', 200, undefined, 'a learned name'],
  ['GET /v1/names?endpoint=me&name=**.example', 200, undefined, 'names of an endpoint'],
  ['GET /v1/names?name=a..b', 400, undefined, 'no pattern'],
  ['GET /v1/ipcache', 200, undefined, 'prefixes of names and resources'],
  ['GET /v1/ipcache?prefix=1.2.3', 400, undefined, 'no prefix'],
  ['GET /v1/identities', 200, undefined, 'some are preallocated'],
  ['GET /v1/identities?endpoint=nobody', 400, undefined, 'no such endpoint'],
  ['GET /v1/sources', 200, undefined, 'the files'],
  ['GET /v1/datapath', 200, undefined, 'entries of the memory datapath'],
  ['GET /v1/status', 200, undefined, 'the whole status'],
  ['GET /v1/status?realized=wanted', 200, undefined, 'the status has a further member'],
  ['GET /v1/status?realized=x', 400, undefined, 'no revision'],
  ['GET /v1/verify', 200, undefined, 'no difference'],
  ['GET /v1/flows', 200, undefined, 'an answer and a refusal'],
  ['GET /v1/flows?verdict=nothing', 400, undefined, 'no such verdict'],
  ['GET /v1/top?window=10m&rows=5', 200, undefined, 'what was asked and refused'],
  ['GET /v1/top?rows=x', 400, undefined, 'no number'],
  ['GET /v1/openapi.json', 200, undefined, 'the document itself'],
  ['POST /v1/mode', 200, { mode: 'audit' }, 'a mode'],
  ['POST /v1/mode', 200, { mode: 'enforce' }, 'back again'],
  ['POST /v1/kubernetes/place', 409, { namespace: 'shop' }, 'the daemon reads no cluster'],
  ['POST /v1/kubernetes/displace', 409, { namespace: 'shop' }, 'the same'],
  ['POST /v1/kubernetes/accept', 409, undefined, 'the same'],
  ['POST /v1/mode', 400, { mode: 'off' }, 'no such mode'],
  ['POST /v1/audit', 200, { scope: 'node', on: true }, 'audit for the node'],
  ['POST /v1/audit', 200, { scope: 'all', on: null }, 'audit is reset'],
  ['POST /v1/audit', 404, { scope: 'endpoint', name: 'x', on: true }, 'no such endpoint'],
  ['POST /v1/explain', 200, { endpoint: 'me', ask: 'a.example' }, 'an allowed name'],
  ['POST /v1/explain', 200, { endpoint: 'me', ask: 'x.example' }, 'a refused name'],
  ['POST /v1/explain', 400, { endpoint: 'me' }, 'no question'],
  ['POST /v1/explain', 404, { endpoint: 'x', ask: 'a.example' }, 'no such endpoint'],
  ['POST /v1/ask', 200, { endpoint: 'me', query: QUERY }, 'a question in the name of an endpoint'],
  ['POST /v1/ask', 404, { endpoint: 'x', query: QUERY }, 'no such endpoint'],
  ['POST /v1/detach?interception=x', 400, undefined, 'neither 1 nor absent'],
  ['POST /v1/detach', 409, undefined, 'the memory datapath has nothing to detach'],
  ['PUT /v1/resources/vm', 200, { addresses: ['198.51.100.8'], ttl: '12h' }, 'with an end'],
  ['PUT /v1/resources/vm%2F2', 200, { addresses: ['198.51.100.9'] }, 'without an end'],
  ['GET /v1/resources', 200, undefined, 'resources of both origins'],
  ['GET /v1/resources', 304, undefined, 'any version is known', ANY],
  ['GET /v1/openapi.json', 304, undefined, 'any version is known', ANY],
  ['GET /v1/resources/vm', 200, undefined, 'one resource'],
  ['GET /v1/resources/vm', 304, undefined, 'any version is known', ANY],
  ['GET /v1/resources/x', 404, undefined, 'no such resource'],
  ['GET /v1/resources/%', 400, undefined, 'no encoded name'],
  ['PUT /v1/resources/vm', 412, { addresses: ['198.51.100.8'] }, 'it exists', ANY],
  ['PUT /v1/resources/vm', 412, { addresses: ['198.51.100.8'] }, 'another version', OTHER],
  ['DELETE /v1/resources/vm', 412, undefined, 'another version', OTHER],
  ['PUT /v1/resources/vm', 400, { addresses: ['x'], ttl: 'y' }, 'two faults'],
  ['PUT /v1/resources/of-file', 409, { addresses: ['192.0.2.10'] }, 'it belongs to a file'],
  ['DELETE /v1/resources/vm', 200, undefined, 'it is removed'],
  ['DELETE /v1/resources/vm', 404, undefined, 'it is gone'],
  ['DELETE /v1/resources/of-file', 409, undefined, 'it belongs to a file'],
  ['DELETE /v1/resources/%', 400, undefined, 'no encoded name'],
  ['GET /v1/nothing', 404, undefined, 'an unknown path'],
  ['POST /v1/status', 405, {}, 'only to be read'],
  ['PATCH /v1/resources/vm', 405, {}, 'no such method'],
  ['GET //', 400, undefined, 'no path at all'],
]

test('every response of a running daemon has its documented form', async () => {
  const socketPath = folder.in('admin.sock')
  for (const [request, status, body, , headers = {}] of ROWS) {
    const [method = '', path = ''] = request.split(' ')
    const given = body === undefined ? {} : { body: JSON.stringify(body) }
    await check(socketPath, method, path, status, { ...given, headers })
  }
  let kept = ''
  await until('the refusal is on disk', async () => {
    kept = await check(socketPath, 'GET', '/v1/flows/kept', 200)
    return kept.includes('"denied.example"')
  })
  assert.match(kept, /"count":1,/)
  const body = '{"addresses":["192.0.2.10"]}'
  const refused = await check(socketPath, 'PUT', '/v1/resources/of-file', 409, { body })
  assert.match(refused, /"file":"resources.yaml","line":1,"column":13/)
})

test('every operation refuses another format, another type of body, a long body and no JSON', async () => {
  const socketPath = folder.in('admin.sock')
  for (const { method, path, hasBody } of api.operations) {
    const url = path.replace('{name}', 'vm')
    const accept = { headers: { accept: 'text/html, application/*;q=0' } }
    await check(socketPath, method, url, 406, accept)
    if (!hasBody) continue
    const rows: readonly (readonly [status: number, options: HttpOptions, reason: string])[] = [
      [415, { body: '{}', headers: { 'content-type': 'text/plain' } }, 'another type'],
      [413, { body: JSON.stringify('x'.repeat(3_000_000)) }, 'a long body'],
      [400, { body: '{' }, 'no JSON'],
    ]
    for (const [status, options] of rows) await check(socketPath, method, url, status, options)
  }
})

test('a problem has its type, its title and its place, and 405 names the methods', async () => {
  const socketPath = folder.in('admin.sock')
  const answer = await http({ socketPath }, '/v1/resources/a?b=c', { method: 'POST', body: '{}' })
  assert.equal(answer.type, 'application/problem+json')
  assert.equal(answer.headers.allow, 'GET, PUT, DELETE')
  const detail = '/v1/resources/a takes GET, PUT, DELETE, found POST'
  assert.deepEqual(JSON.parse(answer.text), {
    type: 'urn:namegate:problem:method-not-allowed',
    title: 'The path has no such method',
    status: 405,
    detail,
    instance: '/v1/resources/a?b=c',
    error: detail,
  })
})

/** A server whose parts fail, and whose flows have every form. */
async function broken(work: (socketPath: string) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'namegate-api-'))
  const node = new Node()
  node.setEndpoints([mkEndpoint('me', ['10.0.0.1'])])
  const flows = new FlowRing()
  const peer = prefixOf('198.18.0.9').octets
  const packet = { endpoint: 1, family: 4, peer, protocol: 6, port: 443, reason: 'policy' }
  flows.addPacket(0, { ...packet, kind: 'drop', identity: 9, rule: 0, names: ['a.test'] })
  flows.addPolicyLost(0, 1, 'prod/web')
  const fail = (): never => {
    throw new Error('a bug')
  }
  const outcome = (): ResourceOutcome => {
    const kept = Promise.reject(new Error('disk full'))
    return { kind: 'ok', changed: true, expires: undefined, kept }
  }
  const given: Partial<AdminState> = {
    ...{ clock: systemClock, flows, keptFlows: undefined, notReady: fail },
    ...{ setResource: outcome, removeResource: outcome, detach: () => undefined },
  }
  const { state } = mkAdmin(node, given)
  const socketPath = join(home, 'admin.sock')
  const server = new AdminServer({ state, socket: socketPath, onError: () => undefined })
  await server.start()
  try {
    await work(socketPath)
  } finally {
    await server.stop()
    rmSync(home, { recursive: true })
  }
}

test('every response of a daemon with failing parts has its documented form', async () => {
  await broken(async (socketPath) => {
    const body = (value: object) => ({ body: JSON.stringify(value) })
    await check(socketPath, 'GET', '/v1/status', 500)
    await check(socketPath, 'PUT', '/v1/resources/a', 500, body({ addresses: ['192.0.2.1'] }))
    await check(socketPath, 'DELETE', '/v1/resources/a', 500)
    await check(socketPath, 'POST', '/v1/ask', 503, body({ endpoint: 'me', query: QUERY }))
    await check(socketPath, 'GET', '/v1/flows/kept', 409)
    await check(socketPath, 'POST', '/v1/detach', 200)
    const lines = await check(socketPath, 'GET', '/v1/flows', 200)
    assert.equal(lines.split('\n').length, 3)
  })
})

/** Responses that the tests above cannot cause. 500 is the same for all operations. */
const UNSEEN: readonly string[] = [
  'POST /v1/explain 409', // only before the first policies are read
  'POST /v1/kubernetes/place 200', // with a cluster: kernel/kubernetes/
  'POST /v1/kubernetes/place 503',
  'POST /v1/kubernetes/displace 200',
  'POST /v1/kubernetes/accept 200',
  'PUT /v1/resources/{name} 503', // after ten seconds without a commit
  'DELETE /v1/resources/{name} 503',
]

test('the tests of this file have seen every response of the document', () => {
  const listed = api.operations.flatMap(({ method, path, statuses }) =>
    statuses.map((status) => `${method} ${path} ${status}`),
  )
  const unseen = listed.filter((each) => !each.endsWith(' 500') && !api.seen.has(each))
  assert.deepEqual(unseen, UNSEEN)
})
