// The commands that ask a daemon, with an admin server on its own socket.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../src/admin/server.ts'
import { systemClock } from '../../src/core/clock.ts'
import { InvalidInputError, UnavailableError, UsageError } from '../../src/core/errors.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { namegate, objectIn, runCommand } from '../support/nodes/command.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'
import { answerTo, FakeUpstream } from '../support/peers/upstream.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'

const askCommand = namegate('ask')
const auditCommand = namegate('audit')
const datapathCommand = namegate('datapath')
const flowsCommand = namegate('flows')
const getCommand = namegate('get')
const statusCommand = namegate('status')

const folder = mkdtempSync(join(tmpdir(), 'namegate-cli-'))
const socket = join(folder, 'admin.sock')
const config = join(folder, 'namegate.yaml')
writeFileSync(config, `admin: { socket: ${JSON.stringify(socket)} }\n`)

const node = new Node()
node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'], ['external:app=shop'])])
node.setPolicies(mkPolicies('egress: [{ toFQDNs: [{ matchPattern: "*.x" }] }]'))
node.learn(node.endpoint('shop').id, 'a.x', ['192.0.2.1', '2001:db8::1'])
let notReady: readonly string[] = []
const { state, audits } = mkAdmin(node, { clock: systemClock, notReady: () => notReady })
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('getCommand prints each resource as an aligned table', async () => {
  const tables: readonly (readonly [resource: string, lines: readonly RegExp[]])[] = [
    [
      'endpoints',
      [
        /^ID {2}NAME {2}ADDRESSES {2}ENFORCING/,
        /^1 {3}shop {2}10\.0\.0\.1 +no +no +1\/1 +policy-0/,
      ],
    ],
    ['policies', [/^NAMESPACE {2}NAME/, /^- +policy-0 {2}in-force {2}1 +\*\.x +- +p\.yaml/]],
    ['selectors', [/^SELECTOR {2}KIND/, /^\*\.x +fqdn {2}1 +yes +1677\d+/]],
    [
      'names',
      // In no fixed order.
      [
        /^NAME {2}ENDPOINT/,
        /^a\.x +shop +(?=.*192\.0\.2\.1 \(live)(?=.*2001:db8::1 \(live, TTL to [\d:]{8}\))/,
      ],
    ],
    [
      'ipcache',
      [
        /^PREFIX/,
        /^10\.0\.0\.1\/32/,
        /^192\.0\.2\.1\/32 +1677\d+ +\(all\) +fqdn:\*\.x .*name a\.x$/,
        /2001:db8::1\/128/,
      ],
    ],
    ['identities', [/^ID +REFERENCES/, /external:app=shop/, /yes +fqdn:\*\.x/, /fqdn:\*\.x/]],
    ['datapath', [/^MAP +KEY +VALUE/, /^ng_mode +mode +enforce/]],
  ]
  for (const [resource, lines] of tables) {
    const { code, out, err } = await runCommand(getCommand, resource, '--socket', socket)
    assert.deepEqual([code, err], [0, ''], resource)
    const shown = out.split('\n')
    lines.forEach((line, i) => assert.match(shown[i] ?? '', line, resource))
  }
  const none = await runCommand(getCommand, 'resources', '--socket', socket)
  assert.deepEqual(none, { code: 0, out: '', err: 'no resources\n' })
})

test('getCommand prints the daemon’s JSON and nothing else, by the config’s socket too', async () => {
  const args = ['endpoints', '-o', 'json', '--config', config]
  const { code, out, err } = await runCommand(getCommand, ...args)
  assert.deepEqual([code, err], [0, ''])
  const rows: unknown = JSON.parse(out)
  assert.ok(Array.isArray(rows) && rows.length === 1)
  assert.equal(objectIn(JSON.stringify(rows[0]))['name'], 'shop')
})

test('getCommand says which resource was meant', async () => {
  const rows: readonly (readonly [args: readonly string[], reason: RegExp])[] = [
    [[], /get needs one of endpoints, /],
    [['endpoint'], /unknown resource "endpoint", expected .*; did you mean endpoints\?/],
    [['names', 'ipcache'], /get takes one resource, found also ipcache/],
    [['names', '-o', 'yaml'], /-o: found yaml, expected json/],
  ]
  for (const [args, reason] of rows) {
    const { code, out, err } = await runCommand(getCommand, ...args)
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, reason)
  }
})

test('statusCommand shows the state, and with --ready its exit code says whether it is', async () => {
  const text = await runCommand(statusCommand, '--socket', socket)
  assert.equal(text.code, 0)
  assert.match(text.out, /^health: +ok\nready: +yes\nversion: +1\.2\.3, pid \d+\n/)
  assert.match(text.out, /\nlisteners: +127\.0\.0\.1:5300, 0\.0\.0\.0:10053 \(tproxy\)\n/)
  const limits = text.out.split('\n').filter((line) => line.startsWith('limit '))
  assert.deepEqual(limits, [
    'limit pairs: 80 of 100 used, hit 3 times',
    'limit queries-in-flight-per-client: bound 1, hit 9 times',
  ])
  const { out } = await runCommand(statusCommand, '-o', 'json', '--socket', socket)
  assert.equal(objectIn(out)['health'], 'ok')
  notReady = ['policy is not loaded']
  const ready = await runCommand(statusCommand, '--ready', '--socket', socket)
  assert.equal(ready.code, 1)
  assert.match(ready.out, /\nready: +no: policy is not loaded\n/)
  assert.equal((await runCommand(statusCommand, '--socket', socket)).code, 0)
  notReady = []
})

test('flowsCommand prints a line for each flow, filtered by verdict', async () => {
  const { octets } = prefixOf('198.18.0.9')
  state.flows.addDns(0, mkDnsFlow('evil.test', { kind: 'denied', from: '198.18.0.9' }))
  const [policy] = node.policies.policies
  assert.ok(policy !== undefined)
  const rule = node.core.origins.setOf([node.core.origins.originOf(policy)])
  const packet = { endpoint: 1, family: 4, protocol: 6, port: 443, identity: 9, rule }
  const names = ['www.x', 'x']
  state.flows.addPacket(0, { ...packet, kind: 'audit', peer: octets, reason: 'policy', names })
  const all = await runCommand(flowsCommand, '--socket', socket)
  assert.deepEqual(all, {
    code: 0,
    err: '',
    out:
      '1970-01-01T00:00:00.000Z deny  shop         A evil.test denied, client 198.18.0.9\n' +
      '1970-01-01T00:00:00.000Z audit shop         TCP 198.18.0.9:443 (www.x, x) would be dropped: policy by policy-0 (policy-0.yaml:5); identity 9 [reserved:world-ipv4]\n',
  })
  const audit = await runCommand(
    flowsCommand,
    '--verdict',
    'audit',
    '-o',
    'json',
    '--socket',
    socket,
  )
  assert.equal(objectIn(audit.out)['port'], 443)
  assert.equal((await runCommand(flowsCommand, '--verdict', 'x', '--socket', socket)).code, 2)
})

test('auditCommand asks for one scope, which must be named', async () => {
  audits.length = 0
  const rows: readonly (readonly [args: readonly string[], out: string])[] = [
    [['on', '--node'], 'audit on for the node: no endpoint is denied anything; mode is enforce\n'],
    [
      ['off', '--node'],
      'audit off for the node: endpoints and policies with their own audit setting keep it; mode is enforce\n',
    ],
    [['on', '--endpoint', 'shop'], 'audit on for a\n'],
    [['reset', '--all'], 'audit reset for all; mode is enforce\n'],
    [['reset', '--endpoint', 'shop'], 'audit reset for a\n'],
    [['off', '--selector', 'app=shop,k8s:a=b=c'], 'audit off for a\n'],
  ]
  for (const [args, out] of rows) {
    const ran = await runCommand(auditCommand, ...args, '--socket', socket)
    assert.deepEqual(ran, { code: 0, out, err: '' })
  }
  const matchLabels = new Map([
    ['app', 'shop'],
    ['k8s:a', 'b=c'],
  ])
  assert.deepEqual(audits.at(-1), {
    scope: { kind: 'selector', selector: { matchLabels } },
    on: false,
  })
  for (const args of [
    [],
    ['maybe'],
    ['on'],
    ['on', '--node', '--endpoint', 'a'],
    ['on', '--selector', 'a'],
    ['on', '--all'],
    ['reset', '--all', '--node'],
  ]) {
    assert.equal((await runCommand(auditCommand, ...args)).code, 2, args.join(' '))
  }
  const nobody = runCommand(auditCommand, 'on', '--endpoint', 'nobody', '--socket', socket)
  await assert.rejects(nobody, UsageError)
})

test('datapathCommand verify exits 1 and names the entry that differs', async () => {
  const same = await runCommand(datapathCommand, 'verify', '--socket', socket)
  assert.deepEqual(same, { code: 0, out: 'no differences\n', err: '' })
  const taken = node.recorder.prefixes.get('192.0.2.1/32')
  assert.ok(taken !== undefined)
  node.recorder.prefixes.delete('192.0.2.1/32')
  const differs = await runCommand(datapathCommand, 'verify', '--socket', socket)
  assert.equal(differs.code, 1)
  assert.match(
    differs.out,
    /^MAP +KEY +WANT +HAVE\nng_ipcache {2}192\.0\.2\.1\/32 +identity \d+ .* -\n$/,
  )
  const json = await runCommand(datapathCommand, 'verify', '-o', 'json', '--socket', socket)
  const want = `identity ${taken.identity} class world-ipv4`
  const differences = [{ map: 'ng_ipcache', key: '192.0.2.1/32', want, have: null }]
  assert.deepEqual([json.code, JSON.parse(json.out)], [1, { differences }])
  node.recorder.prefixes.set('192.0.2.1/32', taken)
})

test('datapathCommand mode asks the daemon if nothing is pinned', async () => {
  const { code, out } = await runCommand(datapathCommand, 'mode', 'bypass', '--config', config)
  assert.deepEqual([code, out, node.recorder.mode.read()], [0, 'mode is bypass\n', 'bypass'])
  node.recorder.mode.set('enforce')
  await assert.rejects(runCommand(datapathCommand, 'detach', '--config', config), UnavailableError)
  for (const args of [[], ['mode'], ['mode', 'off'], ['verify', 'x'], ['mode', 'audit', 'x']]) {
    assert.equal((await runCommand(datapathCommand, ...args)).code, 2, args.join(' '))
  }
})

test('askCommand shows answer and decision, over UDP and TCP', async (t) => {
  const upstream = await FakeUpstream.start()
  t.after(() => upstream.stop())
  const args = ['B.X', '--server', `127.0.0.1:${upstream.port}`, '--socket', socket]
  // The answer of a listener, which records the flow.
  upstream.behaviour = (query) => {
    state.flows.addDns(0, mkDnsFlow('b.x', { kind: 'answered', outcome: 1, addresses: 1 }))
    query.send(answerTo(query))
  }
  for (const more of [[], ['--tcp']]) {
    const { code, out } = await runCommand(askCommand, ...args, ...more)
    assert.equal(code, 0, out)
    const protocol = more.length === 0 ? 'UDP' : 'TCP'
    const first = `^b\\.x\\. A: NOERROR over ${protocol} \\(qr .*\\)\\nNAME +TTL +TYPE +DATA\\n`
    assert.match(out, new RegExp(first, 'i'))
    assert.doesNotMatch(out, /cut off/)
    const json = await runCommand(askCommand, ...args, ...more, '-o', 'json')
    assert.equal(objectIn(json.out)['protocol'], protocol)
    assert.match(out, /\ndecision: 1970-.* allow shop +A b\.x NOERROR, 1 address learned\n$/)
  }
  assert.deepEqual(
    upstream.queries.map(({ transport }) => transport),
    ['udp', 'udp', 'tcp', 'tcp'],
  )
  upstream.behaviour = (query) => {
    const octets = answerTo(query, { addresses: [] })
    octets[2]! |= 2
    query.send(octets)
  }
  const { out: cut } = await runCommand(askCommand, ...args)
  assert.match(
    cut,
    /NOERROR over UDP \(qr .*tc.*\)\nthe answer is cut off: --tcp asks for all of it\n/i,
  )
  upstream.behaviour = (query) => query.send(answerTo(query))
  const other = await runCommand(askCommand, ...args)
  assert.equal(other.code, 0, 'the flows of earlier queries are not of this one')
  assert.match(other.out, /\ndecision: none: 127\.0\.0\.1:\d+ is no listener of this daemon \(/)
  for (const bad of [[], ['a', 'A', 'b'], ['a..b'], ['a', 'NOTYPE']]) {
    assert.equal((await runCommand(askCommand, ...bad, '--socket', socket)).code, 2, bad.join(' '))
  }
  const where = ['a', '--server', 'nowhere', '--socket', socket]
  assert.equal((await runCommand(askCommand, ...where)).code, 2)
})

test('Commands name the remedy when no daemon runs or the config is wrong', async () => {
  const gone = [
    [
      'none.sock',
      /^No daemon at .*none\.sock: there is no such socket; start one with 'namegate run'/,
    ],
    ['up-box/admin.sock', /: there is no such socket; give the same 'namegate up' again/],
  ] as const
  for (const [name, expected] of gone) {
    await assert.rejects(runCommand(statusCommand, '--socket', join(folder, name)), (error) => {
      assert.ok(error instanceof UnavailableError)
      assert.match(error.message, expected)
      return true
    })
  }
  const wrong = join(folder, 'wrong.yaml')
  writeFileSync(wrong, 'admn: {}\n')
  await assert.rejects(runCommand(statusCommand, '--config', wrong), InvalidInputError)
})
