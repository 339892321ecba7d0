// The connection over TLS and HTTP/2 to a fake API server: answers, watches, bounds, broken and silent sessions, tokens.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { systemClock, type Clock } from '../../src/core/clock.ts'
import type { ApiAccess } from '../../src/kubernetes/connection/access.ts'
import { PONG_MS, QUIET_MS } from '../../src/kubernetes/connection/api-session.ts'
import { Connection } from '../../src/kubernetes/connection/connection.ts'
import type { ApiBounds } from '../../src/kubernetes/connection/exchange.ts'
import { isMapping } from '../../src/documents/source-document.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { ApiModel } from '../support/kubernetes/api-model.ts'
import { makeCertificate, NO_OPENSSL } from '../support/kubernetes/certificates.ts'
import { FakeApiServer } from '../support/kubernetes/fake-api-server.ts'
import { codeOf, get, until, watch } from '../support/kubernetes/watch-client.ts'

const skip = NO_OPENSSL
const folder = mkdtempSync(join(tmpdir(), 'namegate-kubernetes-'))
after(() => rmSync(folder, { recursive: true }))
const certificate = skip === false ? makeCertificate(folder) : { cert: '', key: '' }
const CNP = '/apis/cilium.io/v2/ciliumnetworkpolicies'

interface Lab {
  readonly server: FakeApiServer
  readonly connection: Connection
  readonly access: ApiAccess
}

interface LabOptions {
  readonly clock?: Clock
  readonly bounds?: ApiBounds
  readonly access?: Partial<ApiAccess>
}

async function mkLab(
  context: TestContext,
  { clock, bounds, access }: LabOptions = {},
): Promise<Lab> {
  const server = new FakeApiServer(new ApiModel(), certificate)
  await server.listen()
  const whole: ApiAccess = {
    origin: server.origin,
    prefix: '',
    serverName: undefined,
    authority: { kind: 'text', text: certificate.cert },
    isInsecure: false,
    token: { kind: 'text', text: 'admintoken' },
    client: undefined,
    ...access,
  }
  const connection = new Connection({
    access: whole,
    clock: clock ?? systemClock,
    agent: 'namegate/test',
    ...(bounds === undefined ? {} : { bounds }),
  })
  context.after(async () => {
    connection.close()
    await server.close()
  })
  return { server, connection, access: whole }
}

function put({ server }: Lab, name: string, text = ''): void {
  server.model.put('ciliumnetworkpolicies', {
    metadata: { name, namespace: 'shop' },
    spec: { text },
  })
}

test('Connection reads a packed list over one session', { skip }, async (context) => {
  const lab = await mkLab(context)
  for (let i = 0; i < 40; i++) put(lab, `p${i}`, 'x'.repeat(5_000))
  const end = await get(lab.connection, CNP)
  assert.equal(codeOf(end), 200)
  const items = end.kind === 'answer' && isMapping(end.body) ? end.body['items'] : undefined
  assert.equal(Array.isArray(items) ? items.length : 0, 40)
  assert.ok(lab.connection.counts.octets < 100_000, 'the body came packed')
  await get(lab.connection, CNP)
  assert.equal(lab.connection.counts.sessions, 1)
})

test('Connection brings the events of a watch, and its orderly end', { skip }, async (context) => {
  const lab = await mkLab(context)
  const seen = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100&timeoutSeconds=1`)
  await until('the watch is open', () => seen.isOpen)
  put(lab, 'ä')
  await until('an event came', () => seen.events.length === 1)
  await until('the watch ended', () => seen.end !== undefined)
  assert.deepEqual(seen.end, { kind: 'ended' })
})

test('Connection ends requests with a reason', { skip }, async (context) => {
  const lab = await mkLab(context)
  const rows: readonly (readonly [
    answer: FakeApiServer['before'],
    pattern: RegExp,
    reason: string,
  ])[] = [
    [(_, response) => (response.stream.close(2), true), /HTTP\/2|INTERNAL/, 'the stream was reset'],
    [
      (_, response) => (response.stream.session?.destroy(), true),
      /no answer|closed/,
      'the session broke',
    ],
    [
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' })
        response.end('no gzip')
        return true
      },
      /incorrect header check/,
      'the body is not packed as it says',
    ],
    [
      (_, response) => {
        response.writeHead(200)
        response.write('{"items"')
        setTimeout(() => response.stream.close(8), 20)
        return true
      },
      /no answer|closed/,
      'the body is incomplete',
    ],
  ]
  for (const [answer, pattern, reason] of rows) {
    lab.server.before = answer
    const end = await get(lab.connection, CNP)
    assert.equal(end.kind, 'lost', reason)
    assert.match(String(codeOf(end)), pattern, reason)
  }
  lab.server.before = () => false
  assert.equal(codeOf(await get(lab.connection, CNP)), 200)
})

test('Connection names what keeps it from the server', { skip }, async (context) => {
  const rows: readonly (readonly [access: Partial<ApiAccess>, pattern: RegExp, reason: string])[] =
    [
      [{ origin: 'https://127.0.0.1:1' }, /ECONNREFUSED/, 'no server'],
      [{ authority: undefined }, /self-signed/, 'an unknown authority'],
      [{ serverName: 'other.test' }, /other\.test/, 'a certificate for another name'],
      [
        { token: { kind: 'file', path: join(folder, 'missing') } },
        /ENOENT.*missing/,
        'no file of the token',
      ],
      [{ authority: { kind: 'text', text: 'no PEM' } }, /self-signed|PEM/, 'no certificate'],
    ]
  for (const [access, pattern, reason] of rows) {
    const { connection } = await mkLab(context, { access })
    assert.match(String(codeOf(await get(connection, CNP))), pattern, reason)
  }
})

test('Connection accepts an unknown certificate only if configured', { skip }, async (context) => {
  const lab = await mkLab(context, { access: { authority: undefined, isInsecure: true } })
  assert.equal(codeOf(await get(lab.connection, CNP)), 200)
})

test('Connection bounds lines and bodies, and counts both', { skip }, async (context) => {
  const lab = await mkLab(context, { bounds: { line: 2_000, body: 3_000 } })
  put(lab, 'small')
  assert.equal(codeOf(await get(lab.connection, CNP)), 200)
  const seen = watch(lab.connection, `${CNP}?watch=true&resourceVersion=101`)
  await until('the watch is open', () => seen.isOpen)
  put(lab, 'large', 'x'.repeat(9_000))
  await until('the watch ended', () => seen.end !== undefined)
  assert.equal(seen.end?.kind, 'too-long')
  assert.deepEqual(seen.events, [])
  assert.equal((await get(lab.connection, CNP)).kind, 'too-long')
  const { longLines, longBodies } = lab.connection.counts
  assert.deepEqual([longLines, longBodies], [1, 1])
})

test('Connection reads Retry-After', { skip }, async (context) => {
  const lab = await mkLab(context)
  lab.server.before = (_, response) => {
    response.writeHead(429, { 'retry-after': '7' })
    response.end()
    return true
  }
  const end = await get(lab.connection, CNP)
  assert.deepEqual(end, { kind: 'answer', code: 429, body: undefined, retryAfterMs: 7_000 })
})

test(
  'Connection makes a new session after GOAWAY, and finishes open requests on the old one',
  { skip },
  async (context) => {
    const lab = await mkLab(context)
    const seen = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100`)
    await until('the watch is open', () => seen.isOpen)
    lab.server.sayGoodbye()
    await until('GOAWAY came', () => lab.connection.counts.goaways === 1)
    assert.equal(codeOf(await get(lab.connection, CNP)), 200)
    assert.equal(lab.connection.counts.sessions, 2)
    put(lab, 'a')
    await until('an event came on the old session', () => seen.events.length === 1)
  },
)

test('Connection makes a new session after a broken one', { skip }, async (context) => {
  const lab = await mkLab(context)
  const seen = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100`)
  await until('the watch is open', () => seen.isOpen)
  lab.server.breakAll()
  await until('the watch was lost', () => seen.end?.kind === 'lost')
  assert.equal(codeOf(await get(lab.connection, CNP)), 200)
})

test(
  'Connection pings a quiet session, and ends it without an answer',
  { skip },
  async (context) => {
    const clock = new FakeClock()
    const lab = await mkLab(context, { clock })
    const seen = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100`)
    await until('the watch is open', () => seen.isOpen)
    const { counts } = lab.connection
    clock.advance(QUIET_MS - 1_000)
    assert.equal(counts.pings, 0)
    clock.advance(1_000)
    assert.equal(counts.pings, 1)
    for (let i = 0; i < 100; i++) await turn()
    clock.advance(PONG_MS)
    assert.deepEqual([counts.unanswered, seen.end], [0, undefined], 'the server answered')
    clock.advance(QUIET_MS + 15_000 + PONG_MS)
    assert.equal(counts.unanswered, 1, 'no time for the answer')
    await until('the watch was lost', () => seen.end?.kind === 'lost')
  },
)

test('Connection reads a token again when its file changes', { skip }, async (context) => {
  const path = join(folder, 'token')
  writeFileSync(path, 'admintoken\n')
  const lab = await mkLab(context, { access: { token: { kind: 'file', path } } })
  assert.equal(codeOf(await get(lab.connection, CNP)), 200)
  lab.server.tokens.clear()
  lab.server.tokens.add('renewed')
  assert.equal(codeOf(await get(lab.connection, CNP)), 401, 'the old token')
  writeFileSync(path, 'renewed')
  assert.equal(codeOf(await get(lab.connection, CNP)), 200, 'the new token')
  const { size } = statSync(path)
  lab.server.tokens.add('another')
  writeFileSync(path, 'another')
  assert.equal(statSync(path).size, size, 'a token of the same length')
  lab.server.tokens.delete('renewed')
  assert.equal(codeOf(await get(lab.connection, CNP)), 200, 'without 401')
})

test('Connection counts an event without its end as lost', { skip }, async (context) => {
  const lab = await mkLab(context)
  lab.server.before = (_, response) => {
    response.writeHead(200)
    response.end('{"type":"BOOKMARK"}\n{"type":')
    return true
  }
  const seen = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100`)
  await until('the watch ended', () => seen.end !== undefined)
  assert.deepEqual(seen.events, [{ type: 'BOOKMARK' }])
  assert.deepEqual(seen.end, { kind: 'lost', reason: 'the last event is incomplete' })
})

test('Connection calls nothing after cancel or close', { skip }, async (context) => {
  const lab = await mkLab(context)
  const cancelled = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100`)
  await until('the watch is open', () => cancelled.isOpen)
  cancelled.cancel()
  const closed = watch(lab.connection, `${CNP}?watch=true&resourceVersion=100`)
  await until('the watch is open', () => closed.isOpen)
  lab.connection.close()
  put(lab, 'a')
  for (let i = 0; i < 100; i++) await turn()
  assert.deepEqual(
    [cancelled.events, cancelled.end, closed.events, closed.end],
    [[], undefined, [], undefined],
  )
})
