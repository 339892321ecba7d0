// `namegate top` and `GET /v1/top`: the counts, and the output for a pipe, a program and a terminal.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import { topView } from '../../../src/admin/views/top.ts'
import type { Terminal } from '../../../src/cli/command.ts'
import { PLAIN } from '../../../src/cli/style.ts'
import { formatTop } from '../../../src/cli/top/top-text.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { FLOW_CAPACITY } from '../../../src/flows/record/flow-ring.ts'
import { http, mkAdmin } from '../../support/nodes/admin.ts'
import { namegate, objectIn, runCommand } from '../../support/nodes/command.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { mkEndpoint, Node, prefixOf, wireOf } from '../../support/nodes/node.ts'

const topCommand = namegate('top')
const folder = mkdtempSync(join(tmpdir(), 'namegate-top-'))
const socket = join(folder, 'admin.sock')

function mkState() {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('mail', ['10.0.0.2'])])
  return mkAdmin(node, { clock: systemClock }).state
}

const state = mkState()
const now = systemClock.wall()
const packet = { endpoint: 1, family: 4, peer: prefixOf('198.18.0.9').octets, identity: 9, rule: 0 }
state.flows.addDns(now - 3_600_000, mkDnsFlow('old.test', { kind: 'answered' }))
for (let i = 0; i < 3; i++)
  state.flows.addDns(now - 100, mkDnsFlow('WWW.test', { kind: 'answered' }))
state.flows.addDns(now - 90, mkDnsFlow('www.test', { kind: 'answered', endpoint: 2 }))
for (let i = 0; i < 2; i++) state.flows.addDns(now - 80, mkDnsFlow('evil.test', { kind: 'denied' }))
state.flows.addPacket(now - 70, {
  ...{ ...packet, kind: 'drop', protocol: 6, port: 443, names: ['b.test'], reason: 'policy' },
})
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('topView counts verdicts, names, endpoints and refusals of the window, most frequent first', async () => {
  const { time: _time, ...top } = await topView(state, { windowMs: 600_000, rows: 2 })
  const last = new Date(now - 80).toISOString()
  assert.deepEqual(top, {
    seconds: 600,
    flows: 7,
    verdicts: { allow: 4, deny: 3, audit: 0, error: 0, event: 0 },
    names: [
      { name: 'www.test', flows: 4, refused: 0 },
      { name: 'evil.test', flows: 2, refused: 2 },
    ],
    endpoints: [
      { endpoint: 'shop', flows: 6, refused: 3 },
      { endpoint: 'mail', flows: 1, refused: 0 },
    ],
    refusals: [
      {
        ...{ count: 2, last, endpoint: 'shop', what: 'A evil.test' },
        ...{ names: [], reason: 'denied', rules: [] },
      },
      {
        ...{ count: 1, last: new Date(now - 70).toISOString(), endpoint: 'shop' },
        ...{ what: 'TCP 198.18.0.9:443', names: ['b.test'], reason: 'policy', rules: [] },
      },
    ],
  })
})

test('topView counts the names of questions only, and not the expired name of a packet', async () => {
  const more = mkState()
  const drop = { ...packet, kind: 'drop', protocol: 6, port: 443, names: [] } as const
  more.flows.addPacket(now, { ...drop, expiredName: wireOf('gone.test'), reason: 'policy' })
  const { names, flows } = await topView(more, { windowMs: 600_000, rows: 2 })
  assert.deepEqual([names, flows], [[], 1])
})

test('topView shows an endpoint that is gone by its name, and counts the next one of that name with it', async () => {
  const gone = new Node()
  gone.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  const { state: more } = mkAdmin(gone, { clock: systemClock })
  more.flows.addDns(now, mkDnsFlow('www.test', { kind: 'answered', endpoint: 1 }))
  gone.setEndpoints([mkEndpoint('shop', ['10.0.0.2'])])
  more.flows.addDns(now, mkDnsFlow('www.test', { kind: 'denied', endpoint: 2 }))
  const { endpoints } = await topView(more, { windowMs: 600_000, rows: 5 })
  assert.deepEqual(endpoints, [{ endpoint: 'shop', flows: 2, refused: 1 }])
})

test('topView says how much time the ring covers when it is full', async () => {
  const full = mkState()
  const flow = mkDnsFlow('a.test', { kind: 'answered' })
  for (let i = 0; i < FLOW_CAPACITY + 5; i++) full.flows.addDns(systemClock.wall() - 5000, flow)
  const { seconds, flows } = await topView(full, { windowMs: 600_000, rows: 2 })
  assert.equal(flows, FLOW_CAPACITY)
  assert.ok(seconds >= 5 && seconds < 600, `${seconds} s`)
})

test('GET /v1/top refuses wrong parameters', async () => {
  for (const query of ['window=x', 'window=0s', 'rows=x', 'rows=1001', 'limit=3']) {
    const { status } = await http({ socketPath: socket }, `/v1/top?${query}`)
    assert.equal(status, 400, query)
  }
})

test('topCommand prints once to a pipe, and JSON for programs', async () => {
  const { code, out } = await runCommand(topCommand, '--window', '10m', '--socket', socket)
  assert.equal(code, 0)
  assert.match(out, /^namegate top {2}[\d:]{8} {2}7 flows in 600 s, 0\.0\/s\nallow 4 {2}deny 3 /)
  assert.match(out, /\n {3}FLOWS {3}REFUSED {2}NAME\n {7}4 {9}0 {2}www\.test\n/)
  assert.match(out, /\n {7}2 {2}shop {2}A evil\.test: denied\n/)
  assert.match(out, /\n {7}1 {2}shop {2}TCP 198\.18\.0\.9:443 \(b\.test\): policy\n/)
  assert.match(out, /\n {5}0\.4 {9}0 {2}192\.0\.2\.53:53 up\n$/)
  const json = await runCommand(topCommand, '-o', 'json', '--socket', socket)
  const found = objectIn(json.out)
  assert.ok(Array.isArray(found['upstreams']) && Array.isArray(found['refusals']))
})

test('topCommand says what rows without an endpoint are, and that a server was refused', async () => {
  const more = mkState()
  more.flows.addDns(now - 50, mkDnsFlow('a.test', { kind: 'unknown-client', endpoint: 0 }))
  more.flows.addDns(now - 40, mkDnsFlow('b.test', { kind: 'denied', reason: 'server' }))
  const { time, ...rest } = await topView(more, { windowMs: 600_000, rows: 2 })
  const look = { status: {}, width: 100, rows: 3, style: PLAIN }
  const text = formatTop({ ...look, top: { time, ...rest } }).join('\n')
  assert.match(text, / 1 {2}\S+ {2}A b\.test: the asked server is refused, not the name/)
  assert.match(text, /ENDPOINT\n[^]* +1 +1 +\(addresses of no endpoint\)\n/)
  assert.match(text, / 1 {2}\(addresses of no endpoint\) {2}A a\.test: unknown-client\n/)
})

test('topCommand heads counts of flows that only audit would refuse with AUDITED', async () => {
  const more = mkState()
  more.flows.addPacket(now - 70, {
    ...{ ...packet, kind: 'audit', protocol: 6, port: 443, names: [], reason: 'policy' },
  })
  const { time, ...rest } = await topView(more, { windowMs: 600_000, rows: 2 })
  const look = { status: {}, width: 100, rows: 3, style: PLAIN }
  const text = formatTop({ ...look, top: { time, ...rest } }).join('\n')
  assert.match(text, /AUDITED {2}WHAT/)
  assert.doesNotMatch(text, /REFUSED/)
})

test('topCommand refuses wrong options', async () => {
  for (const line of ['extra', '--interval 1ms', '--window x', '--rows many', '--color x']) {
    assert.equal((await runCommand(topCommand, ...line.split(' '))).code, 2, line)
  }
})

test('topCommand draws in place on a terminal, within its size, and leaves the terminal as it was', async () => {
  let end = (): void => undefined
  const parts: string[] = []
  const terminal: Terminal = { columns: 40, rows: 20, onInterrupt: (run) => void (end = run) }
  const write = (text: string): void => {
    parts.push(text)
    if (parts.length > 3) end()
  }
  const args = ['--interval', '100ms', '--window', '10m', '--socket', socket]
  assert.equal(await topCommand(args, { stdout: write, stderr: write, terminal }), 0)
  assert.deepEqual(
    [parts[0], parts.at(-1)],
    ['\u001b[?1049h\u001b[?25l', '\u001b[?25h\u001b[?1049l'],
  )
  const screens = parts.slice(1, -1)
  assert.ok(screens.length >= 2)
  for (const screen of screens) {
    assert.ok(screen.startsWith('\u001b[H') && screen.endsWith('\u001b[J'))
    // oxlint-disable-next-line no-control-regex
    const lines = screen.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, '').split('\n')
    assert.ok(lines.length <= terminal.rows, screen)
    for (const line of lines) assert.ok(Array.from(line).length <= terminal.columns, line)
  }
})
