// `GET /v1/flows` with filters, over HTTP: which flows come, and which requests are refused.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { FLOW_CAPACITY } from '../../../src/flows/record/flow-ring.ts'
import { http, mkAdmin } from '../../support/nodes/admin.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { mkEndpoint, Node } from '../../support/nodes/node.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-flow-stream-'))
const socketPath = join(folder, 'admin.sock')
const node = new Node()
node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
const { state } = mkAdmin(node, { clock: systemClock })
const server = new AdminServer({
  state,
  socket: socketPath,
  onError: (error) => assert.ifError(error),
})
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

/** Fills the ring, and a hundred more: every tenth flow is denied. */
const COUNT = FLOW_CAPACITY + 100
const denied = mkDnsFlow('evil.test', { kind: 'denied' })
const answered = mkDnsFlow('www.test', { kind: 'answered' })
for (let i = 0; i < COUNT; i++) state.flows.addDns(i, i % 10 === 0 ? denied : answered)

async function numbers(query: string): Promise<readonly number[]> {
  const { status, text } = await http({ socketPath }, `/v1/flows?${query}`)
  assert.equal(status, 200, text)
  return Array.from(text.matchAll(/^\{"number":(\d+)/gm), ([, number]) => Number(number))
}

test('GET /v1/flows gives the last flows that a filter accepts, oldest first', async () => {
  assert.deepEqual(await numbers('last=2'), [COUNT - 2, COUNT - 1])
  assert.deepEqual(
    await numbers('last=3&verdict=deny'),
    [30, 20, 10].map((back) => Math.ceil(COUNT / 10) * 10 - back),
  )
  assert.deepEqual(await numbers('last=0'), [])
  assert.deepEqual(await numbers('verdict=event'), [])
  assert.deepEqual(await numbers('since=1s'), [], 'all flows are of 1970')
  const all = await numbers('verdict=deny&name=evil.test&endpoint=shop')
  assert.deepEqual([all.length, all[0]], [Math.ceil(FLOW_CAPACITY / 10), 100])
})

test('GET /v1/flows refuses a filter that can match no flow', async () => {
  for (const query of ['endpoint=shopp', 'port=53&verdict=denied', 'verdct=deny']) {
    const { status, text } = await http({ socketPath }, `/v1/flows?${query}`)
    assert.equal(status, 400, query)
    assert.match(text, /"detail":"/)
  }
})
