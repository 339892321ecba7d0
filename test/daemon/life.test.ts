// The life of the daemon as a process: readiness, signals at any time, an orderly end, and a start after a kill.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, describe, test } from 'node:test'
import { http } from '../support/nodes/admin.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { answering, FakeUpstream, silent } from '../support/peers/upstream.ts'

const files = {
  'policy.yaml': policyText('web', ['a.example']),
  'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
}
const folders: DaemonFolder[] = []
const daemons: RunningDaemon[] = []
const upstreams: FakeUpstream[] = []

after(async () => {
  for (const daemon of daemons) await daemon.process.stop()
  for (const upstream of upstreams) await upstream.stop()
  for (const folder of folders) folder.remove()
})

function mkDaemon(
  config: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {},
): DaemonFolder {
  const folder = new DaemonFolder({ files: { ...files, ...more }, config })
  folders.push(folder)
  return folder
}

async function serve(folder: DaemonFolder): Promise<RunningDaemon> {
  const daemon = await folder.serve()
  daemons.push(daemon)
  return daemon
}

async function startUpstream(port = 0): Promise<FakeUpstream> {
  const upstream = await FakeUpstream.start(answering, port)
  upstreams.push(upstream)
  return upstream
}

function asking(port: number): Readonly<Record<string, string>> {
  return { upstreams: `{ servers: ["127.0.0.1:${port}"] }` }
}

describe('the daemon', { concurrency: 2 }, () => {
  test('becomes ready when an upstream starts that was dead at the start', async () => {
    const [port, metrics] = [await freePort(), await freePort()]
    const folder = mkDaemon({
      ...asking(port),
      metrics: `{ address: 127.0.0.1, port: ${metrics} }`,
    })
    assert.equal((await folder.namegate('status', '--ready')).code, 3, 'no daemon yet')
    const daemon = await serve(folder)
    const before = await folder.namegate('status', '--ready')
    assert.equal(before.code, 1, before.stdout)
    assert.match(before.stdout, /ready: +no: no upstream has answered yet\n/)
    const readyz = await http({ port: metrics }, '/readyz')
    assert.deepEqual(
      [readyz.status, readyz.text],
      [503, 'not ready: no upstream has answered yet\n'],
    )
    await startUpstream(port)
    const deadline = performance.now() + 5000
    while ((await daemon.status())['ready'] !== true) {
      assert.ok(performance.now() < deadline, 'the daemon stays not ready')
      await sleep(50)
    }
    assert.equal((await folder.namegate('status', '--ready')).code, 0)
    assert.deepEqual((await http({ port: metrics }, '/readyz')).text, 'ready\n')
    assert.equal((await http({ port: metrics }, '/healthz')).status, 200)
  })

  test('ends with 0 at SIGTERM and removes its socket; a second SIGTERM ends the wait for answers', async () => {
    const upstream = await startUpstream()
    const folder = mkDaemon(asking(upstream.port))
    const daemon = await serve(folder)
    const client = await daemon.client()
    assert.equal((await client.ask('a.example')).rcode, 'NOERROR')
    upstream.behaviour = silent
    const seen = upstream.seen
    client.send('a.example')
    while (upstream.seen === seen) await sleep(5)
    client.close()
    daemon.process.kill('SIGTERM')
    await daemon.process.untilOutput(/stopping; the memory datapath leaves nothing in the kernel/)
    daemon.process.kill('SIGTERM')
    const output = await daemon.process.ended(15_000)
    assert.equal(output?.code, 0, output?.stderr)
    assert.equal(existsSync(folder.in('admin.sock')), false)
  })

  test('starts at once after SIGKILL, over the files that the killed daemon left', async () => {
    const upstream = await startUpstream()
    const folder = mkDaemon(asking(upstream.port))
    const first = await serve(folder)
    first.process.kill('SIGKILL')
    await first.process.ended(30_000)
    assert.equal(existsSync(folder.in('admin.sock')), true, 'the socket is stale')
    assert.equal(existsSync(folder.in('state/lock')), true)
    const second = await serve(folder)
    const client = await second.client()
    assert.equal((await client.ask('a.example')).rcode, 'NOERROR')
    client.close()
    second.process.kill('SIGINT')
    assert.equal((await second.process.ended(30_000))?.code, 0)
  })

  for (const [signal, ends] of [
    ['SIGHUP', false],
    ['SIGTERM', true],
  ] as const) {
    test(`handles ${signal} during its start`, async () => {
      const upstream = await startUpstream()
      const names = Array.from({ length: 10_000 }, (_, i) => `n${i}.example`)
      const folder = mkDaemon(asking(upstream.port), {
        'policy.yaml': policyText('web', ['a.example', ...names]),
      })
      const daemon = folder.spawn()
      daemons.push(daemon)
      const { process } = daemon
      // The daemon makes the socket before it reads long policies.
      await process.until(
        () => (existsSync(folder.in('admin.sock')) ? true : undefined),
        'socket',
        40_000,
      )
      assert.doesNotMatch(process.stderr, /namegate serves/)
      process.kill(signal)
      if (ends) {
        const output = await process.ended(60_000)
        assert.equal(output?.code, 0, output?.stderr)
        assert.equal(existsSync(folder.in('admin.sock')), false)
        return
      }
      await process.untilOutput(/namegate serves/, 60_000)
      const client = await daemon.client()
      assert.equal((await client.ask('a.example')).rcode, 'NOERROR')
      client.close()
    })
  }
})
