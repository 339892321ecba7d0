// The web page over HTTP, over TCP and on the admin socket, for each kind of client.

import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { systemClock } from '../../../src/core/clock.ts'
import { UnavailableError } from '../../../src/core/errors.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { CERTIFICATE, KEY } from '../../support/nodes/certificate.ts'
import { send, servePage, TOKEN, WITH_TOKEN, type PageLab } from '../../support/nodes/page.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const POLICY = `egress: [ { toFQDNs: [ { matchPattern: "*.cilium.io" } ], toPorts: [ { ports: [ { port: "443" } ] } ] } ]`

async function serve(context: TestContext, given: object = {}): Promise<PageLab> {
  const node = mkPolicyNode([POLICY])
  node.learn(node.endpoint('a').id, 'www.cilium.io', ['203.0.113.5'])
  const { state } = mkAdmin(node, { clock: systemClock })
  const lab = await servePage(state, given)
  context.after(async () => await lab.stop())
  return lab
}

/** A page over TCP with or without the right to write, and the calls that it made to the daemon. */
async function serveWriter(context: TestContext, write: boolean) {
  const { state, audits } = mkAdmin(mkPolicyNode([POLICY]), { clock: systemClock })
  const lab = await servePage(state, { write })
  context.after(async () => await lab.stop())
  return { lab, audits }
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

test('PageServer answers 401 without a token, and nothing else', async (context) => {
  const lab = await serve(context)
  const paths = [
    '//',
    '/page/app.js',
    '/page/live',
    '/page/explore?text=a',
    '/page/none',
    '/v1/status',
    '/metrics',
    '/x',
  ]
  for (const path of paths) {
    const { status, body, headers } = await send(lab.tcp, path)
    assert.deepEqual([status, body.length, headers['content-type']], [401, 0, undefined], path)
  }
  const { status, body, headers } = await send(lab.tcp, '/')
  assert.equal(status, 401)
  assert.match(body.toString(), /name="token"/)
  assert.doesNotMatch(`${body.toString()}${JSON.stringify(headers)}`, /namegate|1\.2\.3/)
  assert.match(String(headers['content-security-policy']), /style-src 'sha256-/)
  assert.equal(lab.counts.refused.token, paths.length + 1)
})

test('PageServer gives a cookie for the token of the form, and ends the session', async (context) => {
  const lab = await serve(context)
  const origin = `http://127.0.0.1:${lab.tcp.port}`
  const signIn = { method: 'POST', headers: { ...FORM, origin }, body: `token=${TOKEN}` }
  const entered = await send(lab.tcp, '/sign-in', signIn)
  assert.deepEqual([entered.status, entered.headers.location], [303, '/'])
  const [set = ''] = entered.headers['set-cookie'] ?? []
  assert.match(set, /HttpOnly; SameSite=Strict$/)
  const cookie = set.split(';')[0] ?? ''
  assert.equal((await send(lab.tcp, '/', { headers: { cookie } })).status, 200)
  const left = await send(lab.tcp, '/sign-out', { method: 'POST', headers: { cookie, origin } })
  assert.equal(left.status, 303)
  assert.equal((await send(lab.tcp, '/', { headers: { cookie } })).status, 401)
})

test('PageServer refuses all tokens after five wrong ones', async (context) => {
  const lab = await serve(context)
  const guess = async (token: string): Promise<number> =>
    (await send(lab.tcp, '/page/app.js', { headers: { authorization: `Bearer ${token}` } })).status
  for (let i = 0; i < 5; i++) assert.equal(await guess(`wrong-${i}`), 401)
  assert.equal(await guess(TOKEN), 429, 'also the right one')
  const form = await send(lab.tcp, '/sign-in', {
    method: 'POST',
    headers: FORM,
    body: `token=${TOKEN}`,
  })
  assert.equal(form.status, 429)
  assert.ok(Number(form.headers['retry-after']) > 0)
  assert.equal(lab.counts.refused.guesses, 2)
})

test('PageServer says in the form why a token was not accepted', async (context) => {
  const lab = await serve(context)
  const formOf = async (token: string): Promise<string> => {
    const sent = { method: 'POST', headers: FORM, body: `token=${token}` }
    const { body, headers } = await send(lab.tcp, '/sign-in', sent)
    const text = body.toString()
    assert.equal(Number(headers['content-length']), body.length)
    assert.ok(!text.includes(token), 'the form does not repeat the token')
    return /<p role="alert">(.*)<\/p>/.exec(text)?.[1] ?? 'no message'
  }
  const first = (await send(lab.tcp, '/')).body.toString()
  assert.match(first, /<p role="alert"><\/p>/, 'no message before the first token')
  for (let i = 0; i < 5; i++) assert.equal(await formOf(`guessed-token-${i}`), 'Wrong token')
  assert.match(await formOf(TOKEN), /^Too many tries: wait \d+ seconds?$/)
  const later = (await send(lab.tcp, '/')).body.toString()
  assert.match(later, /<p role="alert"><\/p>/, 'no message for the form itself')
})

test('PageServer serves the page and never the admin API', async (context) => {
  const lab = await serve(context)
  const rows: readonly (readonly [path: string, status: number, type: RegExp])[] = [
    ['/', 200, /^text\/html/],
    ['/page/app.js', 200, /^text\/javascript/],
    ['/page/style.css', 200, /^text\/css/],
    ['/page/icon.svg', 200, /^image\/svg/],
    ['/page/lib/preact.js', 200, /^text\/javascript/],
    ['/page/lib/htm.js', 200, /^text\/javascript/],
    ['/page/lib/uplot.js', 200, /^text\/javascript/],
    ['/page/lib/uplot.css', 200, /^text\/css/],
    ['/page/endpoints', 200, /^application\/json/],
    ['/page/policies', 200, /^application\/json/],
    ['/page/../package.json', 404, /./],
    ['/page/sign-in.html', 404, /./],
    ['/page/__proto__', 404, /./],
    ['//', 404, /undefined/],
    ['/v1/status', 404, /undefined/],
    ['/v1/mode', 404, /undefined/],
    ['/metrics', 404, /undefined/],
  ]
  for (const [path, status, type] of rows) {
    const got = await send(lab.tcp, path, { headers: WITH_TOKEN })
    assert.equal(got.status, status, path)
    assert.match(String(got.headers['content-type']), type, path)
    if (status === 200) {
      assert.match(
        String(got.headers['content-security-policy']),
        /^default-src 'none'; script-src 'self'/,
      )
    }
  }
  assert.deepEqual(lab.errors, [])
})

test('Page compresses its files, and answers 304 to a browser that has them', async (context) => {
  const lab = await serve(context)
  const plain = await send(lab.tcp, '/page/app.js', { headers: WITH_TOKEN })
  const headers = { ...WITH_TOKEN, 'accept-encoding': 'gzip, br' }
  const zipped = await send(lab.tcp, '/page/app.js', { headers })
  assert.equal(zipped.headers['content-encoding'], 'gzip')
  assert.ok(gunzipSync(zipped.body).equals(plain.body))
  const etag = String(plain.headers.etag)
  const again = await send(lab.tcp, '/page/app.js', {
    headers: { ...WITH_TOKEN, 'if-none-match': etag },
  })
  assert.deepEqual([again.status, again.body.length], [304, 0])
})

test('Page explains, searches from names to endpoints, and refuses wrong use', async (context) => {
  const lab = await serve(context)
  const body = JSON.stringify({ endpoint: 'a', ask: 'x.test' })
  const why = await send(lab.tcp, '/page/explain', { method: 'POST', headers: WITH_TOKEN, body })
  assert.equal(why.status, 200)
  assert.match(why.body.toString(), /"verdict":/)
  for (const text of ['cilium', '203.0.113.5', 'a']) {
    const path = `/page/explore?text=${text}`
    const found: unknown = JSON.parse(
      (await send(lab.tcp, path, { headers: WITH_TOKEN })).body.toString(),
    )
    const all = JSON.stringify(found)
    const words = ['www.cilium.io', '203.0.113.5/32', '*.cilium.io', 'policy-0', '"name":"a"']
    for (const word of words) assert.ok(all.includes(word), `${text} leads to ${word}: ${all}`)
  }
  const rows: readonly (readonly [method: string, path: string, status: number])[] = [
    ['GET', '/page/explore', 400],
    ['GET', `/page/explore?text=${'x'.repeat(300)}`, 400],
    ['GET', '/page/explain', 405],
    ['POST', '/page/explain', 400],
    ['POST', '/', 405],
    ['DELETE', '/page/live', 405],
  ]
  for (const [method, path, status] of rows) {
    assert.equal(
      (await send(lab.tcp, path, { method, headers: WITH_TOKEN })).status,
      status,
      `${method} ${path}`,
    )
  }
})

test('PageServer and AdminServer refuse other sites', async (context) => {
  const lab = await serve(context)
  const rows: readonly (readonly [headers: Record<string, string>, status: number])[] = [
    [{ host: 'evil.example' }, 421],
    [{ host: 'localhost', origin: 'http://evil.example' }, 403],
    [{ host: 'localhost', 'sec-fetch-site': 'cross-site' }, 403],
  ]
  for (const [headers, status] of rows) {
    for (const where of [lab.tcp, lab.socket]) {
      const got = await send(where, '/page/endpoints', { headers: { ...WITH_TOKEN, ...headers } })
      assert.equal(got.status, status, JSON.stringify(headers))
    }
  }
  assert.equal(lab.counts.refused.origin, 2 * rows.length)
})

test('AdminServer serves the page without a token, and lets no browser change anything', async (context) => {
  const { socket: where } = await serve(context)
  assert.equal((await send(where, '/')).status, 200)
  const browser = {
    host: 'localhost:1',
    origin: 'http://localhost:1',
    'sec-fetch-site': 'same-origin',
  }
  const post = async (path: string, body: string): Promise<number> =>
    (await send(where, path, { method: 'POST', headers: browser, body })).status
  assert.equal(await post('/v1/mode', '{"mode":"bypass"}'), 403)
  assert.equal(await post('/page/explain', '{"endpoint":"a","ask":"x.test"}'), 200)
  assert.equal((await send(where, '/v1/status', { headers: browser })).status, 200)
})

test('Page turns audit of an endpoint on and off with admin.page.write, and only over TCP', async (context) => {
  const { lab, audits } = await serveWriter(context, true)
  const scope = { kind: 'endpoint', name: 'a' } as const
  const own = { origin: `http://127.0.0.1:${lab.tcp.port}` }
  const rows: readonly (readonly [body: string, status: number, more: object, reason: string])[] = [
    ['{"endpoint":"a","on":true}', 200, {}, 'audit on'],
    ['{"endpoint":"a","on":null}', 200, own, 'back to the configuration, from the page itself'],
    ['{"endpoint":"nobody","on":true}', 404, {}, 'no such endpoint'],
    ['{"endpoint":"a","on":"yes"}', 400, {}, 'no boolean'],
    ['{"scope":"node","on":true}', 400, {}, 'more than an endpoint'],
    ['{"endpoint":"a","on":true}', 403, { origin: 'http://evil.example' }, 'another site'],
    ['{"endpoint":"a","on":true}', 401, { authorization: 'Bearer wrong' }, 'no token'],
  ]
  for (const [body, status, more, reason] of rows) {
    const headers = { ...WITH_TOKEN, ...more }
    const got = await send(lab.tcp, '/page/audit', { method: 'POST', headers, body })
    assert.equal(got.status, status, reason)
  }
  assert.deepEqual(audits, [
    { scope, on: true },
    { scope, on: undefined },
    { scope: { kind: 'endpoint', name: 'nobody' }, on: true },
  ])
  const get = await send(lab.tcp, '/page/audit', { headers: WITH_TOKEN })
  assert.equal(get.status, 405)
  const rights = await send(lab.tcp, '/page/rights', { headers: WITH_TOKEN })
  assert.equal(rights.body.toString(), '{"write":true}\n')
  const body = '{"endpoint":"a","on":true}'
  assert.equal((await send(lab.socket, '/page/audit', { method: 'POST', body })).status, 403)
})

test('Page changes nothing without admin.page.write', async (context) => {
  const { lab, audits } = await serveWriter(context, false)
  for (const where of [lab.tcp, lab.socket]) {
    const body = '{"endpoint":"a","on":true}'
    const post = { method: 'POST', headers: WITH_TOKEN, body }
    assert.equal((await send(where, '/page/audit', post)).status, 403)
    const rights = await send(where, '/page/rights', { headers: WITH_TOKEN })
    assert.equal(rights.body.toString(), '{"write":false}\n')
  }
  assert.deepEqual(audits, [])
})

test('PageServer speaks TLS, and accepts the names of its certificate', async (context) => {
  const files = await serve(context)
  const [certificate, key] = [join(files.folder, 'c.pem'), join(files.folder, 'k.pem')]
  writeFileSync(certificate, CERTIFICATE)
  writeFileSync(key, KEY)
  const tls = { certificate, key, clientCa: undefined }
  const lab = await serve(context, { tls })
  const status = async (host: string): Promise<number> =>
    (await send(lab.tcp, '/', { tls: true, headers: { ...WITH_TOKEN, host } })).status
  assert.deepEqual([await status('node.example'), await status('evil.example')], [200, 421])
  const headers = { ...FORM, host: 'node.example', origin: 'https://node.example' }
  const signIn = { method: 'POST', tls: true, headers, body: `token=${TOKEN}` }
  assert.match(String((await send(lab.tcp, '/sign-in', signIn)).headers['set-cookie']), /; Secure$/)
})

test('PageServer does not start with a token that others can read or guess', async (context) => {
  const { folder } = await serve(context)
  const tokenFile = join(folder, 'bad-token')
  const rows: readonly (readonly [text: string, mode: number, reason: RegExp])[] = [
    [TOKEN, 0o644, /other users can use .*: run chmod 0600/],
    ['short', 0o600, /fewer than 16 characters: run openssl rand/],
  ]
  for (const [text, mode, reason] of rows) {
    writeFileSync(tokenFile, text)
    chmodSync(tokenFile, mode)
    await assert.rejects(serve(context, { tokenFile }), (error) => {
      assert.ok(error instanceof UnavailableError)
      assert.match(error.message, reason)
      return true
    })
  }
  await assert.rejects(
    serve(context, { tokenFile: join(folder, 'none') }),
    /give another admin.page.token-file/,
  )
})
