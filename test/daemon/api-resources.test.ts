// External resources over the admin socket of a running daemon: responses, restarts and refusals.

import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { http, type HttpAnswer } from '../support/nodes/admin.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { objectIn } from '../support/nodes/command.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { FakeUpstream } from '../support/peers/upstream.ts'

const FILE = 'resources: [ { name: from-file, addresses: [192.0.2.1], labels: { app: old } } ]\n'

let upstream: FakeUpstream
let folder: DaemonFolder
let daemon: RunningDaemon

async function put(name: string, body: unknown): Promise<HttpAnswer> {
  const options = { method: 'PUT', body: typeof body === 'string' ? body : JSON.stringify(body) }
  return await http({ socketPath: folder.in('admin.sock') }, `/v1/resources/${name}`, options)
}

async function remove(name: string): Promise<HttpAnswer> {
  const options = { method: 'DELETE' }
  return await http({ socketPath: folder.in('admin.sock') }, `/v1/resources/${name}`, options)
}

async function listed(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows: unknown = JSON.parse((await daemon.get('/v1/resources')).text)
  assert.ok(Array.isArray(rows))
  return rows.map((row) => objectIn(JSON.stringify(row)))
}

async function names(): Promise<readonly string[]> {
  return (await listed()).map(({ name }) => String(name)).sort()
}

before(async () => {
  upstream = await FakeUpstream.start()
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['www.example']),
      'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
      'resources.yaml': FILE,
    },
    config: {
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }`,
      resources: '{ files: [resources.yaml] }',
      limits: '{ resources: 4 }',
    },
  })
  daemon = await folder.serve()
})

after(async () => {
  await daemon.process.stop()
  await upstream.stop()
  folder.remove()
})

describe('/v1/resources/NAME', () => {
  test('PUT answers with the revision that has the resource, and a repetition changes nothing', async () => {
    const body = { addresses: ['198.51.100.7', '2001:db8:7::/48'], labels: { 'k8s:app': 'db' } }
    const first = await put('db', body)
    assert.equal(first.status, 200, first.text)
    const { revision, ...rest } = objectIn(first.text)
    assert.deepEqual(rest, { name: 'db', changed: true, expires: null, refused: 0 })
    const again = objectIn(
      (await put('db', { ...body, addresses: body.addresses.toReversed() })).text,
    )
    assert.deepEqual([again['changed'], again['revision']], [false, revision])
    const row = (await listed()).find(({ name }) => name === 'db')
    assert.deepEqual(row, {
      name: 'db',
      addresses: ['198.51.100.7', '2001:db8:7::/48'],
      labels: ['k8s:app=db'],
      origin: 'api',
      expires: null,
    })
    const ipcache = (await daemon.get('/v1/ipcache')).text
    assert.match(ipcache, /"prefix":"198\.51\.100\.7\/32",[^\n]*"k8s:app=db"[^\n]*"resource"/)
  })

  test('Restarted daemons have the resources, and those with a TTL keep their end', async () => {
    const until = objectIn((await put('short', { addresses: ['198.51.100.8'], ttl: '1h' })).text)
    await put('a/b:c', { addresses: ['198.51.100.9'] })
    daemon.process.kill('SIGKILL')
    await daemon.process.stop()
    daemon = await folder.serve()
    assert.deepEqual(await names(), ['a/b:c', 'db', 'from-file', 'short'])
    const row = (await listed()).find(({ name }) => name === 'short')
    const ends = [row?.['expires'], until['expires']].map((time) => Date.parse(String(time)))
    const [kept = 0, given = 1] = ends
    assert.ok(Math.abs(kept - given) < 1000, `${kept} and ${given}`)
    assert.equal((await remove('a%2Fb:c')).status, 200)
  })

  test('DELETE answers with the revision, and removes the resource also for the next start', async () => {
    const gone = await remove('short')
    assert.equal(gone.status, 200)
    assert.equal(objectIn(gone.text)['changed'], true)
    assert.deepEqual(
      [(await remove('short')).status, objectIn((await remove('short')).text)['error']],
      [404, 'no resource is named "short"'],
    )
    await daemon.process.stop()
    daemon = await folder.serve()
    assert.deepEqual(await names(), ['db', 'from-file'])
  })

  const refused: readonly (readonly [
    reason: string,
    name: string,
    body: unknown,
    status: number,
    error: string,
  ])[] = [
    ['no JSON', 'x', '{', 400, 'body: expected JSON'],
    ['a list', 'x', [], 400, 'found an empty list, expected a mapping'],
    ['no address', 'x', {}, 400, 'found no address, expected at least one'],
    [
      'host bits',
      'x',
      { addresses: ['192.0.2.1', '10.0.0.1/8'] },
      400,
      'addresses[1]: host bits must be zero: write 10.0.0.0/8, not 10.0.0.1/8',
    ],
    [
      'an invalid name',
      'x%20y',
      { addresses: ['192.0.2.7'] },
      400,
      'name: found "x y", expected a name of 1 to 253 letters, digits, - _ . / and :, a letter or digit first',
    ],
    ...[
      ['%2F', '/'],
      ['__proto__', '__proto__'],
    ].map(([path = '', name = '']): (typeof refused)[number] => [
      `the name ${name}`,
      path,
      { addresses: ['192.0.2.7'] },
      400,
      `name: found "${name}", expected a name of 1 to 253 letters, digits, - _ . / and :, a letter or digit first`,
    ]),
    [
      'a body of more than 64 KiB',
      'x',
      ' '.repeat(65_537),
      413,
      'body: expected at most 65536 octets',
    ],
    ['an invalid path', '%zz', {}, 400, 'path: found %zz, expected an encoded name'],
    [
      'an unknown key',
      'x',
      { addresses: ['192.0.2.7'], label: {} },
      400,
      'unknown field label; did you mean "labels"?',
    ],
    [
      'a TTL without a unit',
      'x',
      { addresses: ['192.0.2.7'], ttl: 5 },
      400,
      'ttl: found 5, expected a duration: a whole number and ms, s, m, h or d, such as 30s (write it in quotes)',
    ],
    [
      'a TTL too short',
      'x',
      { addresses: ['192.0.2.7'], ttl: '10ms' },
      400,
      'ttl: found "10ms", expected a duration from 1s to 3650d',
    ],
    [
      'a reserved label',
      'x',
      { addresses: ['192.0.2.7'], labels: { 'fqdn:x': '' } },
      400,
      'labels["fqdn:x"]: found the source fqdn, which is not for endpoints, expected k8s, external or one of your own',
    ],
    [
      'the name of a resource in a file',
      'from-file',
      { addresses: ['192.0.2.7'] },
      409,
      'from-file is a resource of the file resources.yaml:1: change it there',
    ],
  ]
  for (const [reason, name, body, status, error] of refused) {
    test(`PUT refuses ${reason}`, async () => {
      const answer = await put(name, body)
      assert.deepEqual([answer.status, objectIn(answer.text)['error']], [status, error])
      assert.deepEqual(await names(), ['db', 'from-file'])
    })
  }

  test('PUT past limits.resources is refused, and existing resources can be changed', async () => {
    for (const name of ['c', 'd']) await put(name, { addresses: ['198.51.100.20'] })
    const full = await put('e', { addresses: ['198.51.100.21'] })
    assert.deepEqual(
      [full.status, objectIn(full.text)['error']],
      [409, 'found 5 resources, limits.resources allows 4'],
    )
    assert.equal((await put('d', { addresses: ['198.51.100.22'] })).status, 200)
    for (const name of ['c', 'd']) await remove(name)
  })

  const commands: readonly (readonly [args: string, code: number, output: RegExp])[] = [
    [
      'set vm --address 198.51.100.40 --label app=vm --label k8s:a=b=c --port web=80/TCP --ttl 1d',
      0,
      /^vm: set, until \d{4}-[^ ]*Z; in force with revision \d+\n$/,
    ],
    ['set vm --address 198.51.100.40', 0, /^vm: set; in force/],
    ['set vm --address 198.51.100.40', 0, /^vm: was so before; in force/],
    ['set vm --address 198.51.100.40 -o json', 0, /^\{\n {2}"name": "vm",\n {2}"changed": false/],
    ['set vm --address nowhere', 2, /addresses\[0\]: /],
    ['set vm', 2, /resource set needs --address\nUsage: /],
    ['set vm --address 198.51.100.40 --label app', 2, /--label: found "app", expected KEY=VALUE/],
    ['set from-file --address 198.51.100.40', 3, /from-file is a resource of the file/],
    ['remove vm', 0, /^vm: removed; in force/],
    ['remove vm', 1, /no resource is named "vm"/],
    ['remove vm --ttl 1s', 2, /resource remove takes no --ttl/],
    ['remove from-file', 3, /change it there/],
    ['unset vm', 2, /resource needs set or remove, and a name/],
  ]
  test('namegate resource sets and removes, and prints what it did', async () => {
    for (const [args, code, output] of commands) {
      const ran = await folder.namegate('resource', ...args.split(' '))
      assert.equal(ran.code, code, `${args}: ${ran.stderr}`)
      assert.match(code === 0 ? ran.stdout : ran.stderr, output, args)
    }
    await put('last', { addresses: ['198.51.100.41'], ttl: '1d' })
    const table = await folder.namegate('get', 'resources')
    assert.match(table.stdout, /^NAME +ORIGIN +EXPIRES +ADDRESSES +LABELS\n/)
    assert.match(table.stdout, /\nlast +api +\d{4}-\d\d-\S+Z +198\.51\.100\.41 +-\n/)
    assert.match(table.stdout, /\nfrom-file +file +- +192\.0\.2\.1 +external:app=old\n/)
    await remove('last')
  })

  test('A file with the name of an API resource is refused until that resource is removed', async () => {
    folder.write('resources.yaml', FILE.replace('from-file', 'db'))
    await daemon.process.untilOutput(
      /resources\.yaml:1:\d+: found the name db, which is that/,
      10_000,
    )
    assert.deepEqual(await names(), ['db', 'from-file'])
    assert.equal((await remove('db')).status, 200)
    assert.deepEqual(await names(), ['db'])
    folder.write('resources.yaml', FILE)
    while ((await names()).join() !== 'from-file') await new Promise((done) => setTimeout(done, 20))
  })

  test('Broken files of kept resources are reported and left out, and the daemon starts', async () => {
    await put('good', { addresses: ['198.51.100.30'] })
    await daemon.process.stop()
    const kept = folder.in('state/resources')
    assert.equal(readdirSync(kept).length, 1)
    writeFileSync(`${kept}/zz.json`, 'not looked at')
    writeFileSync(`${kept}/00.json`, '{"version":1,"resources":[')
    writeFileSync(`${kept}/01.json`, '{"version":2,"resources":[]}')
    const open = { name: 'open', addresses: ['0.0.0.0/0'], labels: { 'reserved:host': '' } }
    const file = { name: 'from-file', addresses: ['198.51.100.31'] }
    const late = {
      name: 'late',
      addresses: ['198.51.100.32'],
      ttl: '1s',
      expires: '2020-01-01T00:00:00Z',
    }
    const resources = [open, file, late, 7]
    writeFileSync(`${kept}/02.json`, JSON.stringify({ version: 1, resources }))
    daemon = await folder.serve()
    assert.deepEqual(await names(), ['from-file', 'good'])
    const told = daemon.process.stderr
    for (const text of [
      '00.json: found no resources',
      '01.json: found no resources',
      'open: labels',
      'from-file is a resource of the file',
      'found no resource, expected one',
    ]) {
      assert.ok(told.includes(text), `${text} in ${told}`)
    }
    const warnings = async (): Promise<string> =>
      JSON.stringify((await daemon.status())['warnings'])
    const before = await warnings()
    for (const text of ['00.json: found', '01.json: found', 'left out: open: labels']) {
      assert.ok(before.includes(text), `${text} in ${before}`)
    }
    await put('open', { addresses: ['198.51.100.33'] })
    assert.doesNotMatch(await warnings(), /left out: open/, 'until the resource is set again')
    await remove('open')
  })
})
