// The live lines of the page, for a viewer, for a viewer that does not read, and for one too many.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PAGE_METRICS, VIEWERS_MAX } from '../../../src/admin/page/live.ts'
import type { AdminState } from '../../../src/admin/state.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { METRICS } from '../../../src/daemon/metrics.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { send, servePage, type PageLab } from '../../support/nodes/page.ts'
import { mkPolicies } from '../../support/nodes/node.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const LIMIT_MS = 30_000
/** The clock of the page runs faster for turns, so that a test need not wait for many of them. */
const FASTER = 50
const clock = {
  ...systemClock,
  every: (ms: number, run: () => void) => systemClock.every(ms / FASTER, run),
}

interface Lab extends PageLab {
  readonly state: AdminState
}

/** A policy that lets endpoints ask these names. */
function asking(...names: readonly string[]): string {
  const dns = names.map((name) => `{ matchName: ${name} }`).join(', ')
  return `egress: [ { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ ${dns} ] } } ] } ]`
}

async function serve(
  context: TestContext,
  given: Partial<AdminState> = {},
  node = mkPolicyNode([asking('fine.test')]),
): Promise<Lab> {
  const { state } = mkAdmin(node, { clock, ...given })
  const lab = await servePage(state)
  context.after(async () => await lab.stop())
  return { ...lab, state }
}

async function until(holds: () => boolean, what: string): Promise<void> {
  const end = Date.now() + LIMIT_MS
  while (!holds()) {
    assert.ok(Date.now() < end, what)
    await sleep(10)
  }
}

/** A viewer that reads. Its text grows. */
async function view(lab: Lab): Promise<{ text: string; readonly response: IncomingMessage }> {
  return await new Promise((resolve, reject) => {
    const sent = request({ ...lab.socket, path: '/page/live', agent: false }, (response) => {
      const viewer = { text: '', response }
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (viewer.text += chunk))
      response.on('error', () => undefined)
      resolve(viewer)
    })
    sent.on('error', reject)
    sent.end()
  })
}

test('Live sends the state, its counters, and refusals with the rule and the line that would allow', async (context) => {
  const asked: string[] = []
  const lab = await serve(context, {
    someMetrics: async (wants) => {
      const names = ['namegate_dns_queries_total', 'namegate_process_event_loop_delay_seconds']
      asked.push(...names.filter((name) => wants(name)))
      return await Promise.resolve('# HELP x\nnamegate_dns_queries_total{verdict="denied"} 7\n')
    },
  })
  const deny = (name: string): void =>
    lab.state.flows.addDns(Date.now(), mkDnsFlow(name, { kind: 'denied' }))
  deny('before.test')
  const viewer = await view(lab)
  await until(() => viewer.text.includes('before.test'), 'a refusal from before')
  assert.match(viewer.text, /"samples":\{"dns_queries_total\{verdict=\\"denied\\"\}":7\}/)
  assert.match(viewer.text, /"health":"ok"/)
  assert.ok(!asked.includes('namegate_process_event_loop_delay_seconds'), 'its reading resets it')
  for (let i = 0; i < 3; i++) deny('again.test')
  lab.state.flows.addDns(Date.now(), mkDnsFlow('fine.test', { kind: 'answered' }))
  await until(() => viewer.text.includes('again.test'), 'new refusals')
  const counts = [...viewer.text.matchAll(/again\.test\\n","count":(\d+)/g)].map(([, n]) =>
    Number(n),
  )
  assert.equal(
    counts.reduce((sum, n) => sum + n, 0),
    3,
  )
  assert.match(viewer.text, /"question":\{"endpoint":"a","ask":"again\.test"\}/)
  assert.match(viewer.text, /matchName: \\"again\.test\\"/)
  assert.doesNotMatch(viewer.text, /fine\.test/)
  viewer.response.destroy()
  await until(() => lab.counts.viewers === 0, 'the viewer is gone')
  assert.equal(lab.counts.stalled, 0)
})

test('Live shows a new viewer refusals from before many other flows', async (context) => {
  const lab = await serve(context)
  const { flows } = lab.state
  flows.addDns(Date.now(), mkDnsFlow('early.test', { kind: 'denied' }))
  for (let i = 0; i < 6000; i++) {
    flows.addDns(Date.now(), mkDnsFlow('fine.test', { kind: 'answered' }))
  }
  const viewer = await view(lab)
  await until(() => viewer.text.includes('early.test'), 'the refusal')
  assert.match(viewer.text, /"left":0/)
})

test('Live removes refusals of names and connections that policy allows meanwhile', async (context) => {
  const node = mkPolicyNode([asking('fine.test')])
  const lab = await serve(context, {}, node)
  const deny = (name: string, given: object = {}): void =>
    lab.state.flows.addDns(Date.now(), mkDnsFlow(name, { kind: 'denied', ...given }))
  const viewer = await view(lab)
  await until(() => viewer.text.includes('overview'), 'connected')
  deny('later.test')
  deny('never.test')
  deny('later.test', { qtype: 28, reason: 'server 192.0.2.9 is not trusted' })
  await until(() => viewer.text.includes('"AAAA"'), 'the refusals')
  node.setPolicies(mkPolicies(asking('fine.test', 'later.test')))
  await until(() => viewer.text.includes('"allowed":'), 'what is allowed')
  const next = await view(lab)
  await until(() => next.text.includes('"allowed":'), 'what is allowed of the refusals from before')
  for (const { text } of [viewer, next]) {
    assert.match(text, /never\.test/)
    const [, allowed = ''] = /"allowed":(\[[^\]]*\])/.exec(text) ?? []
    assert.deepEqual(JSON.parse(allowed), ['denied\na\nlater.test\n'])
  }
  for (const { response } of [viewer, next]) response.destroy()
})

test('Live offers no explanation of a refusal whose endpoint is gone', async (context) => {
  const node = mkPolicyNode([asking('fine.test')])
  const lab = await serve(context, {}, node)
  lab.state.flows.addDns(Date.now(), mkDnsFlow('evil.test', { kind: 'denied' }))
  node.setEndpoints([])
  const viewer = await view(lab)
  await until(() => viewer.text.includes('evil.test'), 'the refusal')
  assert.match(viewer.text, /"endpoint":"a","what":"evil\.test"/)
  assert.match(viewer.text, /"question":null/)
  viewer.response.destroy()
})

test('Live sends metrics that exist and that the page shows', () => {
  const scripts = readdirSync('page').filter((name) => name.endsWith('.js'))
  const page = scripts.map((name) => readFileSync(`page/${name}`, 'utf8')).join('\n')
  for (const name of PAGE_METRICS) {
    assert.ok(name in METRICS, `${name} is a metric`)
    assert.match(page, new RegExp(`'${name}|samples\\.${name}\\b`), `the page shows ${name}`)
  }
})

test('Live counts refusals that find no room in a line', async (context) => {
  const lab = await serve(context)
  const viewer = await view(lab)
  await until(() => viewer.text.includes('overview'), 'connected')
  for (let i = 0; i < 300; i++) {
    lab.state.flows.addDns(Date.now(), mkDnsFlow(`n${i}.test`, { kind: 'denied' }))
  }
  await until(() => /"left":[1-9]/.test(viewer.text), 'some are left out')
  const rows = [...viewer.text.matchAll(/"count":1/g)].length
  const left = [...viewer.text.matchAll(/"left":(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0)
  assert.equal(rows + left, 300)
  viewer.response.destroy()
})

test('Live disconnects a viewer that does not read, counts it, and serves the others', async (context) => {
  const lab = await serve(context)
  const other = await view(lab)
  const stalled = connect(lab.socket.socketPath)
  context.after(() => stalled.destroy())
  stalled.on('error', () => undefined)
  stalled.pause()
  stalled.write('GET /page/live HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await until(() => lab.counts.viewers === 2, 'both are viewers')
  let i = 0
  await until(() => {
    for (let k = 0; k < 60; k++) {
      const name = `${'long'.repeat(12)}.n${i++}.test`
      lab.state.flows.addDns(Date.now(), mkDnsFlow(name, { kind: 'denied' }))
    }
    return lab.counts.stalled === 1
  }, 'the stalled viewer is disconnected')
  await until(() => lab.counts.viewers === 1, 'the other one stays')
  const before = other.text.length
  await until(() => other.text.length > before, 'and still gets lines')
  other.response.destroy()
})

test('Live has room for a number of viewers, and refuses more', async (context) => {
  const lab = await serve(context)
  const viewers = []
  for (let i = 0; i < VIEWERS_MAX; i++) viewers.push(await view(lab))
  const { status, body } = await send(lab.socket, '/page/live')
  assert.deepEqual([status, body.toString()], [503, '{"error":"too many viewers"}\n'])
  assert.equal(lab.counts.refused.busy, 1)
  for (const { response } of viewers) response.destroy()
  await until(() => lab.counts.viewers === 0, 'all are gone')
  const late = await view(lab)
  assert.equal(late.response.statusCode, 200, 'there is room again')
  late.response.destroy()
})
