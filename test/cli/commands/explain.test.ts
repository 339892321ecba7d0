// `namegate explain`: an endpoint of a running daemon, by the policy in force.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { UsageError } from '../../../src/core/errors.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { namegate, objectIn, runCommand } from '../../support/nodes/command.ts'
import { mkEndpoint, mkPolicies, Node } from '../../support/nodes/node.ts'

const explainCommand = namegate('explain')
const folder = mkdtempSync(join(tmpdir(), 'namegate-explain-'))
const socket = join(folder, 'admin.sock')
const node = new Node()
node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
node.setPolicies(
  mkPolicies(
    `egress:
    - toEndpoints: [{}]
      toPorts: [{ ports: [{ port: "53", protocol: ANY }], rules: { dns: [{ matchPattern: "*.x" }] } }]
    - toFQDNs: [{ matchPattern: "*.x" }]
      toPorts: [{ ports: [{ port: "443", protocol: TCP }] }]`,
  ),
)
node.learn(node.endpoint('shop').id, 'a.x', ['192.0.2.1'])
const { state } = mkAdmin(node, { clock: systemClock })
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('explainCommand says whether an endpoint can ask or connect, with its exit code', async () => {
  const rows: readonly (readonly [line: string, code: number, out: RegExp, reason: string])[] = [
    ['b.y --as shop', 1, /^verdict: +deny\n/, 'a name that no rule allows'],
    ['a.x --as shop --port 443', 0, /^verdict: +allow\n/, 'NAME with a port: a connection'],
    ['a.x --as shop --port 80', 1, /^verdict: +deny\n/, 'the same at another port'],
    [
      'a.x --as shop --port icmp',
      1,
      /^reason: +ICMP is denied: no rule [^]*not ICMP\n[^]*without toPorts/m,
      'a protocol without ports',
    ],
    ['a.x:443 --as shop', 0, /^verdict: +allow\n/, 'NAME:PORT'],
    ['a.x:ICMP --as shop', 1, /^reason: +ICMP is denied/m, 'NAME:ICMP'],
    ['a.x:80/tcp --as shop', 1, /^verdict: +deny\n/, 'NAME:PORT/PROTOCOL'],
    [
      '192.0.2.9 --port 443 --as shop',
      1,
      /^verdict: +deny\n(?![^]*no address )/,
      'an address in place of NAME',
    ],
    ['[2001:db8::9]:443 --as shop', 1, /^verdict: +deny\n/, '[ADDRESS]:PORT'],
    ['--as shop --address 192.0.2.1 --port 443/TCP', 0, /^verdict: +allow\n/, 'a learned address'],
    ['--as shop --address 192.0.2.1 --port 80/TCP', 1, /^verdict: +deny\n/, 'another port'],
    [
      '--as shop --address 192.0.2.9 --port 443',
      1,
      /^verdict: +deny\n/,
      'an address without a name',
    ],
  ]
  for (const [line, code, expected, reason] of rows) {
    const ran = await runCommand(explainCommand, ...line.split(' '), '--socket', socket)
    assert.deepEqual([ran.code, ran.err], [code, ''], `${reason}: ${ran.out}`)
    assert.match(ran.out, expected, reason)
  }
  const { out } = await runCommand(
    explainCommand,
    'b.y',
    '--as',
    'shop',
    '-o',
    'json',
    '--socket',
    socket,
  )
  assert.equal(objectIn(out)['verdict'], 'deny')
})

test('explainCommand without --as takes the only endpoint', async () => {
  const one = await runCommand(explainCommand, 'a.x:443', '--socket', socket)
  assert.deepEqual([one.code, one.err], [0, 'namegate: for shop, the only endpoint\n'], one.out)
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('till', ['10.0.0.2'])])
  await assert.rejects(
    runCommand(explainCommand, 'a.x', '--socket', socket),
    /give --as ENDPOINT: found shop, till$/,
  )
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
})

test('explainCommand refuses incomplete questions, and endpoints that do not exist', async () => {
  for (const line of [
    '--as shop',
    'a.x b.x --as shop',
    'a.x --as shop --ask b.x',
    'a..x --as shop',
  ]) {
    const { code, out } = await runCommand(explainCommand, ...line.split(' '))
    assert.deepEqual([code, out], [2, ''], line)
  }
  await assert.rejects(
    runCommand(explainCommand, 'a.x', '--as', 'nobody', '--socket', socket),
    UsageError,
  )
})
