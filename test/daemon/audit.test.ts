// Audit settings made at run time for the node, an endpoint or a selector. They outlive the process. The daemon skips an unreadable
// settings file with a warning.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { FakeUpstream } from '../support/peers/upstream.ts'

let upstream: FakeUpstream
let folder: DaemonFolder
let daemon: RunningDaemon

before(async () => {
  upstream = await FakeUpstream.start()
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['a.example']),
      'endpoints.yaml': endpointsText({ one: '127.0.0.1', two: '127.0.0.2', three: '127.0.0.3' }),
    },
    config: { upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }` },
  })
  daemon = await folder.serve()
})

after(async () => {
  await daemon.process.stop()
  await upstream.stop()
  folder.remove()
})

/** The answers of each endpoint about a name that policy denies. */
async function denied(): Promise<readonly string[]> {
  const told: string[] = []
  for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
    const client = await daemon.client(address)
    told.push((await client.ask('denied.example')).rcode)
    client.close()
  }
  return told
}

/** Sends the request of the command, without a process. */
async function audit(on: boolean, scope: Readonly<Record<string, unknown>>): Promise<void> {
  const answer = await daemon.post('/v1/audit', { on, ...scope })
  assert.equal(answer.status, 200, answer.text)
}

const NODE = { scope: 'node' }
const byName = (name: string) => ({ scope: 'endpoint', name })

/** The origin of the audit setting, by name of endpoint. */
async function origins(): Promise<Record<string, string>> {
  const rows: unknown = JSON.parse((await daemon.get('/v1/endpoints')).text)
  assert.ok(Array.isArray(rows))
  const entries = rows.map((row: unknown): [string, string] => {
    assert.ok(typeof row === 'object' && row !== null && 'name' in row && 'reason' in row)
    return [String(row.name), /audit: .*/.exec(String(row.reason))?.[0] ?? '']
  })
  return Object.fromEntries(entries)
}

const NO = 'REFUSED'
const YES = 'NOERROR'

async function restart(signal: NodeJS.Signals): Promise<void> {
  daemon.process.kill(signal)
  await daemon.process.ended(30_000)
  daemon = await folder.serve()
}

describe('namegate audit', () => {
  test('turns auditing on and off for an endpoint, a selector and the node', async () => {
    assert.deepEqual(await denied(), [NO, NO, NO])
    await audit(true, byName('one'))
    assert.deepEqual(await denied(), [YES, NO, NO])
    const said = await folder.namegate('audit', 'on', '--selector', 'app=two')
    assert.equal(said.code, 0, said.stderr)
    assert.deepEqual(await denied(), [YES, YES, NO])
    await audit(true, NODE)
    assert.deepEqual(await denied(), [YES, YES, YES])
    await audit(false, NODE)
    await audit(false, byName('one'))
    assert.deepEqual(await denied(), [NO, YES, NO])
    const flows = await daemon.get('/v1/flows?verdict=audit&last=100')
    assert.match(flows.text, /"kind":"audited","verdict":"audit","endpoint":"three"/)
    assert.equal((await folder.namegate('audit', 'on', '--endpoint', 'nobody')).code, 2)
  })

  test('is in force again after a restart, orderly or not, and after a reload', async () => {
    await audit(true, byName('three'))
    await restart('SIGKILL')
    assert.deepEqual(await denied(), [NO, YES, YES])
    folder.write(
      'endpoints.yaml',
      endpointsText({ one: '127.0.0.1', two: '127.0.0.2', three: '127.0.0.3', four: '127.0.0.4' }),
    )
    await daemon.process.untilOutput(/configuration changed/)
    assert.deepEqual(await denied(), [NO, YES, YES])
    await audit(true, NODE)
    await restart('SIGTERM')
    assert.equal((await daemon.status())['mode'], 'audit')
    assert.deepEqual(await denied(), [YES, YES, YES])
    await audit(false, NODE)
    assert.deepEqual(await denied(), [NO, YES, YES])
    assert.equal((await daemon.status())['mode'], 'enforce')
    assert.deepEqual(await origins(), {
      one: '',
      two: 'audit: run time, by selector',
      three: 'audit: run time',
      four: '',
    })
  })

  test('warns about an unreadable settings file, and starts without it', async () => {
    folder.write('state/settings.json', '{"version":1,"audit":{"endpoints":{"one":"yes"}')
    await restart('SIGTERM')
    assert.match(daemon.process.stderr, /settings passed over.*settings\.json/)
    assert.deepEqual(await denied(), [NO, NO, NO])
    await audit(true, byName('one'))
    await restart('SIGTERM')
    assert.doesNotMatch(daemon.process.stderr, /settings passed over/)
    assert.deepEqual(await denied(), [YES, NO, NO])
  })
})
