// `namegate get` with filters and with --watch.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import type { Terminal } from '../../../src/cli/command.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { UsageError } from '../../../src/core/errors.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { namegate, runCommand } from '../../support/nodes/command.ts'
import { mkEndpoint, mkPolicies, Node } from '../../support/nodes/node.ts'

const getCommand = namegate('get')
const folder = mkdtempSync(join(tmpdir(), 'namegate-get-'))
const socket = join(folder, 'admin.sock')
const node = new Node({ nodeAddresses: ['192.0.2.200'] })
const CLUSTER = 'k8s:io.cilium.k8s.policy.cluster=default'
node.setEndpoints([
  mkEndpoint('shop', ['10.0.0.1'], ['k8s:app=shop', CLUSTER]),
  mkEndpoint('mail', ['10.0.0.2']),
])
node.setPolicies(
  mkPolicies('egress: [{ toFQDNs: [{ matchPattern: "*.x" }] }, { toCIDR: [198.18.0.0/16] }]'),
)
node.learn(node.endpoint('shop').id, 'a.x', ['192.0.2.1', '2001:db8::1'])
node.learn(node.endpoint('mail').id, 'b.x', ['192.0.2.2'])
node.learn(node.endpoint('mail').id, 'a.x', ['192.0.2.3'])
const { state } = mkAdmin(node, { clock: systemClock })
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

/** The cells of the first two columns of each row, sorted. */
async function rowsOf(line: string): Promise<readonly string[]> {
  const { out, err } = await runCommand(getCommand, ...line.split(' '), '--socket', socket)
  if (err !== '') return [err]
  const rows = out.trimEnd().split('\n').slice(1)
  return rows.map((row) => row.split(/ +/, 2).join(' ')).sort()
}

test('getCommand filters names, prefixes and identities by endpoint, name and prefix', async () => {
  const rows: readonly (readonly [line: string, cells: readonly string[], reason: string])[] = [
    ['names --endpoint mail', ['a.x mail', 'b.x mail'], 'what one endpoint learned'],
    ['names --name a.x', ['a.x mail', 'a.x shop'], 'a name'],
    ['names --name *.x --prefix 192.0.2.2/31', ['a.x mail', 'b.x mail'], 'addresses in a prefix'],
    ['names --name *.y', ['no names\n'], 'no such name'],
    ['names --endpoint shop --prefix 2001:db8::/32', ['a.x shop'], 'IPv6'],
  ]
  for (const [line, cells, reason] of rows) assert.deepEqual(await rowsOf(line), cells, reason)
  const prefixes = async (line: string) => (await rowsOf(line)).map((row) => row.split(' ')[0])
  assert.deepEqual(await prefixes('ipcache --endpoint mail'), [
    '10.0.0.2/32',
    '192.0.2.2/32',
    '192.0.2.3/32',
  ])
  assert.deepEqual(await prefixes('ipcache --name b.x'), ['192.0.2.2/32'])
  assert.deepEqual(await prefixes('ipcache --prefix 198.18.5.0/24'), ['198.18.0.0/16'])
  assert.deepEqual(await prefixes('ipcache --prefix 192.0.2.0/30 --endpoint shop'), [
    '192.0.2.1/32',
  ])
  const [all, named] = [await rowsOf('identities'), await rowsOf('identities --name a.x')]
  assert.equal(named.length, 2, 'one of IPv4, one of IPv6')
  assert.ok(all.length > 2 && named.every((row) => all.includes(row)))
})

test('getCommand says for which endpoints a prefix applies', async () => {
  const { out } = await runCommand(getCommand, 'ipcache', '--socket', socket)
  assert.match(out, /^198\.18\.0\.0\/16 +\d+ +\(all\) /m)
  assert.match(out, /^10\.0\.0\.2\/32 +\d+ +\(all\) /m)
})

test('getCommand leaves the default cluster out of labels, except in JSON', async () => {
  for (const table of ['endpoints', 'ipcache', 'identities']) {
    const { out } = await runCommand(getCommand, table, '--socket', socket)
    assert.doesNotMatch(out, /policy\.cluster/, table)
    assert.match(out, /k8s:app=shop/, table)
    const { out: json } = await runCommand(getCommand, table, '-o', 'json', '--socket', socket)
    assert.match(json, /k8s:io\.cilium\.k8s\.policy\.cluster=default/, table)
  }
})

test('getCommand says once of an address of the node that the node owns it', async () => {
  const { out } = await runCommand(getCommand, 'ipcache', '--socket', socket)
  assert.match(out, /^192\.0\.2\.200\/32 .* this node$/m)
  assert.doesNotMatch(out, /node node/)
})

test('getCommand refuses filters that a table does not have, wrong values and unknown endpoints', async () => {
  const rows: readonly (readonly [line: string, fault: RegExp])[] = [
    ['policies --name a.x', /^namegate: get policies has no --name; only names, ipcache, /],
    ['names --name a..x', /^namegate: --name: found an empty label/],
    ['names --prefix 1.2.3', /^namegate: --prefix: expected an address or prefix/],
    ['names --watch --interval 1ms', /^namegate: --interval: expected at least 100ms/],
    ['names --nam a.x', /did you mean --name\?/],
  ]
  for (const [line, fault] of rows) {
    const { code, out, err } = await runCommand(getCommand, ...line.split(' '))
    assert.deepEqual([code, out], [2, ''], line)
    assert.match(err, fault)
  }
  await assert.rejects(rowsOf('names --endpoint shp'), (error) => {
    assert.ok(error instanceof UsageError)
    assert.equal(error.message, 'no endpoint is named "shp"; did you mean shop?')
    return true
  })
})

test('getCommand prints a watched table again when it has changed, until the user ends it', async () => {
  let end = (): void => undefined
  let out = ''
  const terminal: Terminal = { columns: 80, rows: 24, onInterrupt: (run) => void (end = run) }
  const args = ['names', '--name', 'c.x', '--watch', '--interval', '100ms', '--socket', socket]
  const write = (text: string): void => {
    out += text
    // The second table ends the command. Without it the test would not end.
    if (out.includes('192.0.2.6')) end()
  }
  node.learn(node.endpoint('mail').id, 'c.x', ['192.0.2.5'])
  const ended = getCommand(args, { stdout: write, stderr: write, terminal })
  let looks = 0
  while (!out.includes('192.0.2.5') && looks++ < 3000) {
    await new Promise<void>((resolve) => void setTimeout(resolve, 10))
  }
  node.learn(node.endpoint('mail').id, 'c.x', ['192.0.2.6'])
  assert.equal(await ended, 0)
  assert.equal(out.match(/^NAME /gm)?.length, 2, out)
  assert.match(out, /192\.0\.2\.5.*\n\nNAME /)
})
